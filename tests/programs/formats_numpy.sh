#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# NumPy reads our npz, and we read NumPy's, whatever it writes of floats.
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
import struct, sys
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
}


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


if sys.argv[1] == "make":
    np.savez("stored.npz", **model)
    np.savez_compressed("deflated.npz", **model)
    np.savez("whole.npz", w=np.arange(3))
    np.savez("big_endian.npz", w=np.ones(3, ">f4"))
    np.savez("object.npz", w=np.array([None]))
    np.savez("empty.npz", w=np.zeros((0, 3), "<f4"))
elif sys.argv[1] == "pass":
    assert sorted(shapes(sys.argv[2])) == sorted(model)
    for name, value in model.items():
        wanted = flat(value)
        assert shapes(sys.argv[2])[name] == wanted.shape, name
        assert tuples(sys.argv[2])[name] == np.shape(value), name
        assert saved(sys.argv[2], name).tobytes() == wanted.astype("<f4").tobytes(), name
else:
    with np.load(sys.argv[2]) as ours:
        assert sorted(ours.files) == sorted(model)
        for name, value in model.items():
            wanted = np.asarray(value).astype("<f4")
            assert ours[name].dtype == np.dtype("<f4") and ours[name].shape == wanted.shape
            assert ours[name].tobytes() == wanted.tobytes(), name
PY
"$python" numpy_test.py make
for kind in stored deflated; do
	expect 0 "$WEFT" import $kind.npz -o $kind
	says last.out "9 tensors" "from npz"
	"$python" numpy_test.py pass $kind || fail "$kind.npz is read otherwise"
	expect 0 "$WEFT" export $kind/pass-00000 --format=npz -o ours_$kind.npz
	"$python" numpy_test.py ours ours_$kind.npz || fail "NumPy reads ours_$kind.npz otherwise"
done
for kind in whole big_endian object empty; do
	expect 65 "$WEFT" import $kind.npz -o no
	says last.err "$kind.npz: w "
done
size=$(wc -c <deflated.npz)
for bytes in 100 5000 $((size - 30)); do
	head -c $bytes deflated.npz >cut.npz
	expect 65 "$WEFT" import cut.npz -o no
done
