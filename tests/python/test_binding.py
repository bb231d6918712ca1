# SPDX-License-Identifier: Apache-2.0
"""The binding without a job: settings, bad input that no pserver has to see, and its own rules."""

import os
import subprocess
import tempfile
import threading
from unittest import mock

import support

try:
    import docstrings
    import numpy as np
    import weft
    from weft import rng
except ImportError:  # support.main says so
    np = None


class Settings(support.Case):
    def setUp(self):
        self.addCleanup(weft.close)

    def opened(self, **settings):
        return weft.init(**settings).setting

    def has(self, setting, **wanted):
        self.assertEqual({name: setting(name) for name in wanted}, wanted)

    def test_the_environment_is_honoured_and_arguments_win(self):
        said = {"PADDLE_INIT_TRAINER_ID": "2", "PADDLE_INIT_NUM_GRADIENT_SERVERS": "4"}
        said.update(PADDLE_INIT_PORTS_NUM="3", PADDLE_INIT_TRAINER_COUNT="5")
        said.update(PADDLE_INIT_USE_GPU="False", PADDLE_INIT_NICS="eth0", PADDLE_INIT_SOMETHING="1")
        said.update(PADDLE_INIT_PORT="9000", WEFT_PORT="9100", WEFT_CONNECT_TIMEOUT="1.5")
        with mock.patch.dict(os.environ, said):
            setting = self.opened(trainer_id=1, pservers=["192.0.2.1", "192.0.2.2:7000"])
            self.has(setting, trainer_id="1", num_gradient_servers="4", ports_num="3")
            self.has(setting, port="9100", connect_timeout="1500ms")
            self.has(setting, pservers="192.0.2.1,192.0.2.2:7000")
            self.assertEqual((weft.trainer_id(), weft.num_gradient_servers()), (1, 4))
            self.assertEqual(weft.session().trainer_count, 5)

    def test_the_launcher_is_asked_for_what_is_left_open(self):
        said = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "WEFT_TRAINER_ID": "1"}
        with mock.patch.dict(os.environ, said):
            self.has(self.opened(), trainer_id="1", num_gradient_servers="4")
            weft.close()
            self.has(self.opened(num_gradient_servers=3), num_gradient_servers="3")
            weft.close()
        with mock.patch.dict(os.environ, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="999999"):
            with self.assertRaisesRegex(weft.InvalidError, "OMPI_COMM_WORLD_SIZE of Open MPI: num_grad"):
                self.opened()

    def test_what_is_not_given_is_the_librarys_default(self):
        setting = self.opened(port=None)
        self.has(setting, port="7164", ports_num="1", num_gradient_servers="1", optimizer="sgd")
        with self.assertRaisesRegex(weft.InvalidError, 'no setting "prot"; did you mean port'):
            setting("prot")

    def test_settings_go_by_their_names_and_by_those_of_the_original(self):
        setting = self.opened(grad_reduce="mean", optimizer="adam", beta2=0.75, progress="caller", adam_beta1=0.5)
        self.has(setting, grad_reduce="mean", progress="caller", optimizer="adam", beta2="0.75", beta1="0.5")

    def test_a_session_outlives_more_settings_that_are_refused(self):
        session = weft.init(ports_num=2)
        usual = session.setting("optimizer")
        with self.assertRaisesRegex(weft.InvalidError, "learning_rate=nonsense"):
            session._open_again({"optimizer": "adam", "learning_rate": "nonsense"})
        self.has(session.setting, ports_num="2", optimizer=usual)
        self.assertEqual(session.empty(3, name="w").param.shape, (3,))

    def test_numbers_of_any_kind_keep_their_digits(self):
        setting = self.opened(learning_rate=1e-12, epsilon=np.float64(0.1), decay=0.1 + 0.2, ports_num=np.int64(2))
        self.has(setting, learning_rate="1e-12", epsilon="0.1", decay="0.30000000000000004", ports_num="2")
        weft.close()
        setting = self.opened(connect_timeout=1e-5, port=9000.0, skip_nonfinite=True, keep_state=np.True_)
        self.has(setting, connect_timeout="10us", port="9000", skip_nonfinite="true", keep_state="true")

    def refused(self, wanted, **settings):
        with self.assertRaises(weft.InvalidError) as caught:
            weft.init(**settings)
        for text in wanted:
            self.assertIn(text, str(caught.exception))

    def test_bad_settings_name_setting_and_value(self):
        self.refused(["trainer_id=3", "num_gradient_servers=2"], trainer_id=3, num_gradient_servers=2)
        self.refused(["trainer_id=-1", "argument"], trainer_id=-1)
        self.refused(["port=70000", "65535"], port=70000)
        self.refused(["ports_num=many"], ports_num="many")
        self.refused(["ports_num=1.5", "whole"], ports_num=1.5)
        self.refused(["learing_rate", "did you mean learning_rate?"], learing_rate=1)
        self.refused(["grad_reduce=most", "sum|mean"], grad_reduce="most")
        self.refused(["learning_rate=NaN", "a finite number"], learning_rate=float("nan"))
        self.refused(["ports_num={1}", "whole"], ports_num={1})
        self.refused(["compared", "byte 6 is 0x0a"], compared="seed=1\n")
        self.refused(["compared='a\\x00b'", "a byte of 0"], compared="a\0b")
        self.refused(["optimizer", "best"], optimizer="best")
        self.refused(["keep_arrays=0", "not set by this name"], keep_arrays=0)
        self.refused(["trainer_count=0"], trainer_count=0)
        self.refused(["trainer_count='many'"], trainer_count="many")
        self.refused(["log='file'"], log="file")
        with mock.patch.dict(os.environ, PADDLE_INIT_PORTS_NUM="many"):
            self.refused(["PADDLE_INIT_PORTS_NUM", "many"])

    def test_settings_without_a_field_go_by_name(self):
        weft.init(path_retry=0.25)
        weft.close()
        self.refused(["path_retry=-1", "a duration like", "argument"], path_retry=-1)
        self.refused(["path_retry=soon", "a duration like"], path_retry="soon")
        with mock.patch.dict(os.environ, WEFT_PATH_RETRY="2h"):
            self.refused(["path_retry=2h", "WEFT_PATH_RETRY"])
            weft.init(path_retry="20ms")
        weft.close()
        with tempfile.NamedTemporaryFile() as empty:
            self.refused(["secret_file " + empty.name, "too few bytes"], secret_file=empty.name)

    def test_texts_have_the_units_of_the_command_line(self):
        said = dict(WEFT_CONNECT_TIMEOUT="1.5s", WEFT_PEER_TIMEOUT="20ms", WEFT_STEP_TIMEOUT="2m")
        with mock.patch.dict(os.environ, said, WEFT_SLICE_BYTES="64KiB"):
            setting = self.opened(reconnect_timeout=0.25)
            self.has(setting, connect_timeout="1500ms", peer_timeout="20ms", step_timeout="2m")
            self.has(setting, reconnect_timeout="250ms", slice_bytes="64KiB")
        self.refused_again("connect_timeout=5 parsecs", connect_timeout="5 parsecs")
        self.refused_again("port=9K", port="9K")

    def refused_again(self, wanted, **settings):
        weft.close()
        self.refused([wanted], **settings)

    def test_an_empty_variable_counts_as_not_set(self):
        with mock.patch.dict(os.environ, WEFT_PORT="", PADDLE_INIT_PORT="9000", WEFT_USE_GPU="", WEFT_OPTIMIZER=""):
            self.has(self.opened(), port="9000", optimizer="sgd")

    def test_a_gpu_is_refused(self):
        with self.assertRaises(weft.UnsupportedError):
            weft.init(use_gpu=True)
        with mock.patch.dict(os.environ, PADDLE_INIT_USE_GPU="True"):
            with self.assertRaisesRegex(weft.UnsupportedError, "PADDLE_INIT_USE_GPU"):
                weft.init()

    def test_a_second_init_is_refused_until_the_first_is_closed(self):
        weft.init()
        with self.assertRaisesRegex(weft.InvalidError, "second time"):
            weft.init()
        weft.close()
        weft.init()

    def test_without_init_calls_say_so(self):
        with mock.patch.object(weft, "_session", None):
            with self.assertRaisesRegex(weft.InvalidError, "weft.init first"):
                weft.empty(3)


class Arrays(support.Case):
    def setUp(self):
        self.session = weft.Session()
        self.addCleanup(self.session.close)

    def refused(self, pattern, call, *arguments, **more):
        with self.assertRaisesRegex(weft.InvalidError, pattern):
            call(*arguments, **more)

    def test_arrays_are_float32_zeroed_and_apart(self):
        w = self.session.empty((3, 5), name="w")
        c = self.session.empty((2, 3, 4, 5), name="conv")
        s = self.session.empty((), name="scalar")
        self.assertEqual((w.param.shape, c.grad.shape, s.param.shape), ((3, 5), (2, 3, 4, 5), ()))
        self.assertEqual((w.param.dtype, w.param.flags.c_contiguous), (np.float32, True))
        w.param[:] = 1
        c.grad[:] = 2
        self.assertEqual((w.grad.sum(), c.param.sum(), s.param.sum()), (0, 0, 0))
        self.assertEqual(w.param.ctypes.data % 64, 0)

    def test_a_wrong_dtype_is_refused_with_the_tensors_name(self):
        self.refused("tensor w: .*float64", self.session.empty, 3, "float64", "w")
        w = self.session.empty((3, 5), name="w")
        self.refused("tensor w, gradient.*float64", self.session.push, w, np.zeros((3, 5)))

    def test_a_wrong_size_or_rank_is_refused_with_the_tensors_name(self):
        self.refused("tensor w.*below 1", self.session.empty, (3, 0), name="w")
        w = self.session.empty((3, 5), name="w")
        for shape in ((3, 6), (15,), (5, 3), (3, 5, 1)):
            grad = np.zeros(shape, np.float32)
            self.refused(r"tensor w, gradient: its shape is .* \(3, 5\)", self.session.push, w, grad)

    def test_an_array_that_is_not_contiguous_or_read_only_is_refused_with_its_name(self):
        w = self.session.empty((3, 5), name="w")
        turned = np.zeros((5, 3), np.float32).T
        self.refused("tensor w, gradient: it is not contiguous", self.session.push, w, turned)
        self.refused("tensor w, out: it is not contiguous", self.session.pull, w, turned)
        fixed = np.zeros((3, 5), np.float32)
        fixed.flags.writeable = False
        self.refused("tensor w, out: it is read-only", self.session.pull, w, fixed)
        self.refused("tensor w, gradient: a NumPy array", self.session.push, w, [[1.0]])
        masked = np.ma.masked_array(np.zeros((3, 5), np.float32), mask=True)
        self.refused("tensor w, gradient: the array is masked; give array.filled", self.session.push, w, masked)
        self.refused("reduce: the array is masked", self.session.reduce, masked)
        self.refused("abort: 5 is not text", self.session.abort, 5)

    def test_what_is_no_whole_number_or_no_name_is_refused(self):
        self.refused("tensor w, shape: 2.5 is no whole", self.session.empty, (2.5, 3), name="w")
        self.refused("tensor w, shape: -1 is no whole", self.session.empty, (-1, 3), name="w")
        self.refused("tensor w: shape 1,1.* up to 32 dimensions", self.session.empty, (1,) * 33, name="w")
        self.refused("tensor 'a.x00b': its name", self.session.empty, 3, name="a\0b")
        self.refused("samples: -1 is no whole", self.session.step, -1)
        self.refused("samples: 2.0 is no whole", self.session.exchange, samples=2.0)

    def test_bad_settings_of_a_tensor_name_it(self):
        self.refused("tensor w: its dtype is nonsense", self.session.empty, 3, "nonsense", "w")
        self.refused("tensor w: decay=x: must be a finite number", self.session.empty, 3, name="w", decay="x")
        self.refused('tensor w: .*no setting "decai"; did you mean decay', self.session.empty, 3, name="w", decai=1)
        self.refused("tensor w: mode=often: must be one of session", self.session.empty, 3, name="w", mode="often")
        self.refused("tensor w: priority=0.5: must be a whole", self.session.empty, 3, name="w", priority=0.5)
        self.refused("tensor w: .*no setting \"rows\"", self.session.empty, 3, name="w", rows=2)
        self.refused("tensor w: is_static=True .*not set by this name", self.session.empty, 3, name="w", is_static=True)
        self.refused("tensor w: rate_multiplier=0: static", self.session.empty, 3, name="w", rate_multiplier=0)
        self.refused("tensor w: is_reduced: nothing is applied", self.session.empty, 3, name="w", reduce=True, clip=1)
        self.refused("tensor w: in_place: .*set is_reduced, too", self.session.empty, 3, name="w", in_place=True)
        self.refused("is_reduced: it is static", self.session.empty, 3, name="w", reduce=True, static=True)
        self.session.empty(3, name="w", decay=0, l1=0, clip=0.5, rate_multiplier=2, mode="async", priority=-3)

    def test_tables_are_declared_again_when_a_session_is_opened_again(self):
        session = weft.Session(ports_num_for_sparse=1)
        table = session.table("t", 8, admit_count=3)
        session._open_again({"optimizer": "adam"})
        self.refused("learning_rate=nonsense", session._open_again, {"learning_rate": "nonsense"})
        self.refused("table t", session.table, "t", 8)  # it is there
        self.assertEqual((table.key_lane(5), session.setting("optimizer")), (0, "adam"))
        session.empty(3)
        self.refused("the session has tensors already", session._open_again, {})

    def test_bad_settings_of_a_table_name_it(self):
        session = weft.Session(ports_num_for_sparse=1)
        self.addCleanup(session.close)
        self.refused("table t: rest=f64: must be one of f32.bf16.f16", session.table, "t", 8, rest="f64")
        self.refused('table t: .*no setting "admit_slot"; did you mean admit_slots', session.table, "t", 8, admit_slot=1)
        self.refused("table t: memory_cap_bytes=much: must be a size", session.table, "t", 8, memory_cap_bytes="much")
        self.refused("table t: evict_at_cap needs memory_cap_bytes", session.table, "t", 8, evict_at_cap=True)
        self.refused("table t, dim: 2.5 is no whole number", session.table, "t", 2.5)
        self.refused("table t: dim 4294967297 is too large", session.table, "t", (1 << 32) + 1)
        self.refused("table 'a.x00b': its name", session.table, "a\0b", 8)
        table = session.table("t", 8, memory_cap_bytes="1MiB", evict_at_cap=True, adam_beta2=0.5, batch_keys_max=7)
        self.assertEqual((table.dim, table._batch_keys), (8, 7))

    def test_what_is_no_number_is_refused(self):
        self.refused("cost: 'a' is no number", self.session.step, 1, "a")
        self.refused("reduce: values are complex128", self.session.reduce, [1j])
        self.refused("reduce: ", self.session.reduce, [[1], [1, 2]])
        vast = np.broadcast_to(np.float32(1), 1 << 32)  # of 4 bytes
        self.refused("reduce: 4294967296 values, which is 2.32 or more", self.session.reduce, vast)
        self.refused("pull: out needs the tensor", self.session.pull, None, np.zeros(3, np.float32))

    def test_an_array_of_somebody_else_is_refused(self):
        w = self.session.empty(4, name="w")
        self.assertEqual(w.param.size, 4)
        self.refused("none of this session's", self.session.push, np.zeros(4, np.float32))
        self.refused("tensor w, array: its shape", self.session.push, w.grad[:2])
        other = weft.Session()
        self.addCleanup(other.close)
        self.refused("tensor w belongs to another", other.push, w)

    def test_a_tensor_is_refused_twice_or_too_late(self):
        self.session.empty(4, name="w")
        self.refused("w is declared twice", self.session.empty, 4, name="w")
        self.session._seal()
        self.refused("late is added after", self.session.empty, 4, name="late")

    def test_a_static_tensor_has_no_gradient(self):
        self.refused("tensor s is static", lambda: self.session.empty(4, name="s", static=True).grad)

    def test_calls_before_the_start_and_after_the_end_are_refused(self):
        w = self.session.empty(4, name="w")
        self.assertEqual(w.param.sum(), 0)
        self.refused("not started", self.session.push, w)
        self.refused("not started", self.session.barrier)
        self.session.close()
        self.session.close()
        for call in (self.session.wait, self.session.barrier, self.session.stats, lambda: self.session.push(w)):
            with self.assertRaisesRegex(weft.ClosedError, "closed"):
                call()
        for call in (self.session.wait, self.session.push, self.session.pull):
            with self.assertRaisesRegex(weft.ClosedError, "^tensor w: the session was closed"):
                call(w)

    def test_arrays_outlive_their_session(self):
        w = self.session.empty((300, 500), name="w")
        values, grad = w.param, w.grad
        values[:] = 3
        grad[:] = 4
        self.session.close()
        self.assertEqual((values.sum(), grad.sum(), w.param[299, 499]), (450000, 600000, 3))
        values += 1
        self.assertEqual(values[0, 0], 4)

    def test_numpy_gets_the_array_itself_or_a_copy_as_it_asks(self):
        w = self.session.empty((3, 5), name="w")
        w.param[:] = 2
        for dtype in (None, np.float32):
            self.assertTrue(np.shares_memory(w.__array__(dtype), w.param))
            self.assertTrue(np.shares_memory(w.__array__(dtype, copy=False), w.param))
            self.assertFalse(np.shares_memory(w.__array__(dtype, copy=True), w.param))
        self.assertEqual((np.asarray(w, np.float64).dtype, np.array(w).sum()), (np.float64, 30))
        with self.assertRaisesRegex(ValueError, "tensor w: it is float32, and float64 needs a copy"):
            w.__array__(np.float64, copy=False)

    def test_exact_values_are_there_from_the_first_look_on(self):
        self.assertEqual(self.session.empty(4, name="w").exact().tolist(), [0] * 4)
        session = weft.Session(dense_wire="bf16")
        self.addCleanup(session.close)
        self.refused("tensor w: its exact values need keep_state=1", session.empty(4, name="w").exact)

    def test_another_thread_may_go_on(self):
        w = self.session.empty(4, name="w")
        seen = []

        def use():
            w.param[:] = 2
            self.session.wait()
            seen.append(self.session.digest())

        for _ in range(2):
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
        self.assertEqual(seen, [self.session.digest()] * 2)

    def test_a_forked_child_is_refused(self):
        w = self.session.empty(4, name="w")
        w.param[:] = 1
        weft.init()
        self.addCleanup(weft.close)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            calls = [lambda: self.session.push(w), self.session.wait, weft.Session, weft.init]
            for call in calls + [self.session.close, weft.close, weft.init]:
                try:
                    call()
                    said.append("nothing")
                except weft.Error as error:
                    told = "forked from process" in str(error) and "spawn" in str(error)
                    said.append("refused" if told and isinstance(error, weft.ForkedError) else str(error))
            os.write(writer, repr(said).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            said = answer.read()
        os.waitpid(child, 0)
        self.assertEqual(said, repr(["refused"] * 4 + ["nothing"] * 2 + ["refused"]))
        self.assertEqual(w.param.sum(), 4)

    def test_a_table_needs_sparse_lanes(self):
        self.refused("ports_num_for_sparse", self.session.table, "words", 4)
        self.refused("learing_rate", self.session.table, "words", 4, learing_rate=1)


class Numbers(support.Case):
    def test_a_random_number_has_a_bound_that_it_can_be_below(self):
        drawn = rng.Rng(7)
        for bound in (0, -1, (1 << 64) + 1, float("nan")):
            with self.assertRaisesRegex(ValueError, "bound=%r: is from 1" % bound):
                drawn.below(bound)
        self.assertEqual(drawn.below(1 << 64), rng.Rng(7).u64())
        self.assertEqual(drawn.below(1), 0)


class Library(support.Case):
    def test_exceptions_are_pythons_too_and_one_for_each_status(self):
        from weft import _abi, errors

        codes = set(_abi.api().enums["weft_status"].values()) - {0}
        self.assertEqual(codes, set(errors.OF_STATUS))
        self.assertTrue(issubclass(weft.DeadlineError, TimeoutError))
        self.assertTrue(issubclass(weft.LostError, ConnectionError))

    def test_every_function_of_the_headers_is_there(self):
        from weft import _abi

        push = _abi.api().functions.weft_push
        self.assertEqual((push.restype.__name__, len(push.argtypes)), ("c_int", 1))
        self.assertEqual(_abi.api().functions.weft_status_name(0), b"ok")
        self.assertRegex(weft.library_version(), r"^\d+\.\d+\.\d+$")

    def test_a_library_that_is_not_there_is_named(self):
        done = subprocess.run(
            support.python("-c", "import weft; weft.init()"),
            env=support.environment(WEFT_LIBRARY="/nowhere/libweft.so.0"),
            capture_output=True,
            text=True,
        )
        self.assertIn("ImportError: weft: /nowhere/libweft.so.0", done.stderr)
        self.assertIn("WEFT_LIBRARY", done.stderr)

    def test_docstrings_name_every_parameter(self):
        count, missing = docstrings.missing(with_torch=False)
        self.assertEqual(missing, [])
        self.assertGreater(count, 100)

    def test_a_docstring_that_is_missing_or_leaves_something_out_is_found(self):
        def step(samples, cost, _own=None):
            pass

        for doc, missing in (
            (None, ["step has no docstring"]),
            ("Begin.", ["step: its docstring leaves out samples", "step: its docstring leaves out cost"]),
            ("Begin; costs of the samples.", ["step: its docstring leaves out cost"]),
            ("Begin; cost: summed over the samples.", []),
            ("Begin: see weft.step.", []),
        ):
            self.assertEqual(docstrings.of_function("step", doc, step), missing)

    def test_the_package_is_typed(self):
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(weft.__file__), "py.typed")))


if __name__ == "__main__":
    support.main()
