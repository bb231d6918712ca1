#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# NumPy reads npz files of weft, and weft reads those of NumPy, with every kind of float.
. "${0%/*}/lib.sh"
python=
for one in python3 /usr/bin/python3; do
	if [ -z "$python" ] && "$one" -c 'import numpy' 2>/dev/null; then
		python=$one
	fi
done
if [ -z "$python" ]; then
	echo "SKIPPED: NumPy is not there: install python3-numpy" >&2
	exit 77
fi

cat >numpy_test.py <<'PY'
import json, struct, sys
import numpy as np

rng = np.random.default_rng(5)
model = {
    "plain": rng.normal(size=(300, 7)).astype("<f4"),
    "column_by_column": np.asfortranarray(rng.normal(size=(11, 40)).astype("<f4")),
    "turned": rng.normal(size=(6, 9)).astype("<f4").T,
    "double": rng.normal(size=(8, 3)),
    "half": np.array([0, -0.0, 1, 2**-24, -(2**-15), 65504, np.inf], "<f2"),
    "vector": np.arange(33, dtype="<f4"),
    "one": np.float32(2.5),
    "kernel": rng.normal(size=(4, 3, 2, 2)).astype("<f4"),
    "zeros": np.zeros((1000, 1000), "<f4"),
    "four_by_columns": np.asfortranarray(rng.normal(size=(4, 3, 2, 5)).astype("<f4")),
    "big_endian": rng.normal(size=(5, 2)).astype(">f4"),
    "big_by_columns": np.asfortranarray(rng.normal(size=(2, 3, 4)).astype(">f4")),
    "many_dimensions": rng.normal(size=(1,) * 30 + (2, 3)).astype("<f4"),
}
# Arrays that are not tensors of weft come back unchanged.
aside = {
    "steps": np.array(2**62 + 1),
    "mask": rng.random((3, 5)) < 0.5,
    "empty": np.zeros((0, 3), "<f4"),
    "layer/b 1\u00e4.%41\U0001f600": np.arange(4, dtype="i1").reshape(2, 2) - 2,
    "big_whole": np.asfortranarray(rng.integers(-(2**60), 2**60, (2, 3, 4)).astype(">i8")),
    "double": model.pop("double"),
    "half": model.pop("half"),
}
for kind in ("u1", "u2", "u4", "u8", "i2", "i4"):
    aside[kind] = rng.integers(0, 100, 7).astype(kind)


def saved(folder, name):
    data = open(folder + "/pass-00000/" + name, "rb").read()
    assert struct.unpack("<IIQ", data[:16])[:2] == (0, 4)
    return np.frombuffer(data[16:], "<f4")


def shapes(folder):
    words = [line.split() for line in open(folder + "/pass-00000/manifest")]
    return {w[1]: (int(w[2]), int(w[3])) for w in words if w[0] == "tensor"}


def flat(value):
    value = np.atleast_1d(value)
    return value.reshape(len(value), -1)


def tuples(folder):
    """What the lines of shapes, each behind its tensor's, say."""
    found = {}
    for line in open(folder + "/pass-00000/manifest"):
        word = line.split()
        if word[0] == "tensor":
            name = word[1]
        elif word[0] == "shape":
            found[name] = tuple(int(dim) for dim in word[1].split(",") if dim != "()")
    return found


def read_safetensors(path):
    """By the description of the format; shares nothing with ours."""
    data = open(path, "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    types = dict(F64="<f8", F32="<f4", F16="<f2", I64="<i8", I32="<i4", I16="<i2", I8="i1")
    types.update(U64="<u8", U32="<u4", U16="<u2", U8="u1", BOOL="?")
    out, at = {}, 0
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            assert first == at, name
            at = end
            values = np.frombuffer(data[8 + size + first : 8 + size + end], types[entry["dtype"]])
            out[name] = values.reshape(entry["shape"])
    assert at == len(data) - 8 - size
    return out


if sys.argv[1] == "make":
    np.savez("stored.npz", **model, **aside)
    np.savez_compressed("deflated.npz", **model, **aside)
    np.savez("object.npz", w=np.array([None]))
    np.savez("complex.npz", w=np.ones(3, "<c8"))
    np.savez("fields.npz", w=np.ones(3, [("a", "<f4"), ("b", "<f4")]))
    np.savez("text.npz", w=np.array(["a", "bc"]))
    np.save("bare.npy", np.asfortranarray(model["kernel"]))
    np.save("cut.npy", model["kernel"])
    whole = open("cut.npy", "rb").read()
    open("cut.npy", "wb").write(whole[:-1])
    open("more.npy", "wb").write(whole + b"x")
    shape = b"(4, 3, 2, 2)"
    for name, lie in (
        ("negative", b"(4,-3, 2, 2)"),
        ("larger", b"(4, 3, 2, 9)"),
        ("overflow", b"(2**62, 4, )"),
        ("huge", b"(9223372036854775807, 9223372036854775807)"),
        ("dimensions", b"(" + b"1," * 33 + b")"),
    ):
        text = whole[10:128].replace(shape, lie).rstrip() + b"\n"
        open(name + ".npy", "wb").write(whole[:8] + struct.pack("<H", len(text)) + text + whole[128:])
elif sys.argv[1] == "bare":
    with np.load(sys.argv[2]) as ours:
        assert ours.files == ["bare"] and ours["bare"].shape == model["kernel"].shape
        assert ours["bare"].tobytes() == model["kernel"].tobytes()
elif sys.argv[1] == "pass":
    assert sorted(shapes(sys.argv[2])) == sorted(model)
    for name, value in model.items():
        wanted = flat(value)
        assert shapes(sys.argv[2])[name] == wanted.shape, name
        assert tuples(sys.argv[2])[name] == np.shape(value), name
        assert saved(sys.argv[2], name).tobytes() == wanted.astype("<f4").tobytes(), name
else:
    if sys.argv[2].endswith(".npz"):
        with np.load(sys.argv[2]) as file:
            ours = {name: file[name] for name in file.files}
    else:
        ours = read_safetensors(sys.argv[2])
    assert sorted(ours) == sorted({**model, **aside}), sorted(ours)
    for name, value in {**model, **aside}.items():
        value = np.asarray(value)
        wanted = value.astype(value.dtype.newbyteorder("<"), order="C")
        assert ours[name].dtype == wanted.dtype, (name, ours[name].dtype)
        assert ours[name].shape == wanted.shape, (name, ours[name].shape)
        assert ours[name].tobytes() == wanted.tobytes(), name
PY
"$python" numpy_test.py make
for kind in stored deflated; do
	expect 0 "$WEFT" import $kind.npz -o $kind
	says last.out "11 tensors" "from npz"
	says last.err "13 arrays that are not of f32 are kept as they are"
	"$python" numpy_test.py pass $kind || fail "$kind.npz is read otherwise"
	expect 0 "$WEFT" export $kind/pass-00000 --format=npz -o ours_$kind.npz
	"$python" numpy_test.py ours ours_$kind.npz || fail "NumPy reads ours_$kind.npz otherwise"
	expect 0 "$WEFT" export $kind/pass-00000 -o ours_$kind.safetensors
	"$python" numpy_test.py ours ours_$kind.safetensors || fail "ours_$kind.safetensors reads otherwise"
	expect 0 "$WEFT" import ours_$kind.safetensors -o again_$kind
	expect 0 "$WEFT" export again_$kind/pass-00000 -o again_$kind.safetensors
	cmp ours_$kind.safetensors again_$kind.safetensors || fail "$kind: another round gives others"
done
for kind in object complex fields text; do
	expect 65 "$WEFT" import $kind.npz -o no
	says last.err "$kind.npz: w " "--skip=w"
done
expect 0 "$WEFT" import bare.npy -o bare
expect 0 "$WEFT" export bare/pass-00000 --format=npz -o bare.npz
"$python" numpy_test.py bare bare.npz || fail "bare.npy is read otherwise"
for kind in cut more negative larger overflow huge dimensions; do
	expect 65 "$WEFT" import $kind.npy -o no
	says last.err "$kind.npy: $kind "
done
expect 0 "$WEFT" import stored.npz -o some --only='*by_column*' --only=steps --skip='four*'
says last.out "2 tensors"
says last.err "1 arrays that are not of f32" "21 arrays are left out"
expect 64 "$WEFT" import stored.npz -o no --skip='*.weight'
says last.err "skip=*.weight: stored.npz has no array of such a name"
expect 0 "$WEFT" import stored.npz -o wide --convert --only=half --only=double
says last.out "2 tensors, 31 values"
size=$(wc -c <deflated.npz)
for bytes in 100 5000 $((size - 30)); do
	head -c $bytes deflated.npz >cut.npz
	expect 65 "$WEFT" import cut.npz -o no
done
