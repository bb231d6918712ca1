#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `weft gen` writes, read by others: PyYAML, a list of fields, bash, and stand-ins of the
engines, which set the environment as these do.

    gen.py PORT     the first of some free ports; WEFT is the program
"""

import base64
import copy
import json
import os
import re
import subprocess
import sys

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
WEFT = os.environ["WEFT"]
NASTY = [
    "yes", "no", "~", "null", "12", "1e3", "0x1f", "-", "--", "-1", "", " ", "a b", "a: b", "- a", "# a",
    "it's", '"quoted"', "back\\slash", "tab\there", "line\nbreak\n", "carriage\rreturn", "\x1b[31m\x7f",
    "$HOME", "$(HOME)", "$$(HOME)", "$$", "$$$", "$", "`id`", "*", "?", "!x", "&x", "%x", "@x", "{a}",
    "[a]", "a=b", "--x=y z", "--x='", "train", "on", "Off", "y", "2026-11-23", "1:30", "\u6570\u636e",
    "\u2028", "\u0085", "\ufeff", "\U0001f600", "2001:db8::1", "a;b", "a&b", "a|b", "<a>", "(a)", "..",
]


def check(condition, text):
    if not condition:
        raise SystemExit("gen.py: " + text)


def run(*arguments, code=0, env=None):
    done = subprocess.run([WEFT, "gen", *arguments], capture_output=True, env=env)
    out, err = done.stdout.decode(), done.stderr.decode(errors="replace")
    check(done.returncode == code, f"exit code {done.returncode}, not {code}, of {arguments}: {err}")
    check(code == 0 or not out, f"{arguments}: something on stdout although it was refused")
    return out if code == 0 else err


# ---- fields ----


def read_fields():
    types, fields = {}, None
    for line in open(os.path.join(HERE, "gen_fields.txt")):
        line = line.strip()
        if line.startswith("["):
            fields = types.setdefault(line[1 : line.index("]")], {})
            check(not fields, "a type is declared twice: " + line)
        elif line and not line.startswith("#"):
            required, line = line.startswith("! "), line.removeprefix("! ")
            name, kind = line.split(" ", 1)
            fields[name] = (kind, required)
    return types


TYPES = read_fields()
SCALARS = {
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "quantity": lambda v: re.fullmatch(r"[0-9]+(\.[0-9]+)?([mkMGTPE]|[KMGTPE]i)?", str(v)),
    "duration": lambda v: re.fullmatch(r"([0-9]+[hms])+", str(v)),
    "port": lambda v: isinstance(v, (int, str)),
}


def faults(value, kind, path):
    """What is wrong with a value, each with its path."""
    if kind.startswith("list of "):
        if not isinstance(value, list):
            return [path + ": no list"]
        each = [faults(v, kind[8:], f"{path}[{i}]") for i, v in enumerate(value)]
        return sum(each, [])
    if kind.startswith("map of "):
        if not isinstance(value, dict):
            return [path + ": no map"]
        return sum((faults(v, kind[7:], f"{path}.{k}") for k, v in value.items()), [])
    if kind.startswith("one of "):
        return [] if value in kind[7:].split() else [f"{path}: {value!r} is not {kind}"]
    if kind in SCALARS:
        return [] if SCALARS[kind](value) else [f"{path}: {value!r} is no {kind}"]
    if not isinstance(value, dict):
        return [path + ": no map"]
    fields = TYPES[kind]
    found = [f"{path}: no {n}" for n, (_, required) in fields.items() if required and n not in value]
    for name, part in value.items():
        if name not in fields:
            found.append(f"{path}.{name}: {kind} has no such field")
        else:
            found += faults(part, fields[name][0], f"{path}.{name}")
    return found


def kind_of(manifest):
    return f"{manifest.get('apiVersion')} {manifest.get('kind')}"


def places(value, path=()):
    """The path of each map in a document."""
    if isinstance(value, dict):
        yield path
        for name, part in value.items():
            yield from places(part, path + (name,))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from places(part, path + (i,))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def check_fields(manifest):
    kind = kind_of(manifest)
    check(kind in TYPES, f"unknown kind {kind}")
    found = faults(manifest, kind, "")
    check(not found, "; ".join(found))
    # The list itself is looked at: any other field, anywhere, is found. Maps of names are free.
    for path in places(manifest):
        if path and path[-1] in ("plugins", "limits", "requests"):
            continue
        other = copy.deepcopy(manifest)
        at(other, path)["bogus"] = 1
        check(faults(other, kind, ""), f"an unknown field in {path} is not found")
    for path, name in (
        (("spec",), "tasks" if "tasks" in manifest["spec"] else "replicatedJobs"),
        (pod_path(manifest, 0), "containers"),
        (("metadata",), "name"),
    ):
        other = copy.deepcopy(manifest)
        del at(other, path)[name]
        check(faults(other, kind, ""), f"that {name} is missing is not found")
    other = copy.deepcopy(manifest)
    at(other, pod_path(manifest, 0))["terminationGracePeriodSeconds"] = "30"
    check(faults(other, kind, ""), "a text for a number is not found")


# ---- pods, as the controllers make them ----


def pod_path(manifest, which):
    if manifest["kind"] == "Job":
        return ("spec", "tasks", which, "template", "spec")
    return ("spec", "replicatedJobs", which, "template", "spec", "template", "spec")


def container(manifest, which):
    (only,) = at(manifest, pod_path(manifest, which))["containers"]
    return only


def expanded(text, env):
    """As the kubelet reads commands and values: $$ is a dollar, $(NAME) a variable that is set."""
    out, i = "", 0
    while i < len(text):
        if text[i] != "$" or i + 1 == len(text):
            out, i = out + text[i], i + 1
        elif text[i + 1] == "$":
            out, i = out + "$", i + 2
        elif text[i + 1] == "(" and ")" in text[i:]:
            end = text.index(")", i)
            name = text[i + 2 : end]
            out, i = out + env.get(name, text[i : end + 1]), end + 1
        else:
            out, i = out + text[i : i + 2], i + 2
    return out


def start(manifest, which, index):
    """Command and environment of a pod: those of the manifest, and what the controller adds."""
    has = container(manifest, which)
    env = {}
    for variable in has["env"]:
        env[variable["name"]] = expanded(variable["value"], env)
    name = manifest["metadata"]["name"]
    if manifest["kind"] == "Job":
        check({"env", "svc"} <= manifest["spec"]["plugins"].keys(), "the plugins env and svc")
        env["VC_TASK_INDEX"] = env["VK_TASK_INDEX"] = str(index)
        for task in manifest["spec"]["tasks"]:
            hosts = [f"{name}-{task['name']}-{i}.{name}" for i in range(task["replicas"])]
            upper = task["name"].upper().replace("-", "_")
            env[f"VC_{upper}_HOSTS"] = ",".join(hosts)
            env[f"VC_{upper}_NUM"] = str(len(hosts))
    else:
        env["JOB_COMPLETION_INDEX"] = str(index)
    return [expanded(word, env) for word in has["command"]], env


def load(text):
    (manifest,) = yaml.safe_load_all(text)
    return manifest


def weft_shows(arguments, env):
    env = dict(env, PATH=os.environ["PATH"])
    done = subprocess.run([WEFT, *arguments], capture_output=True, text=True, env=env)
    check(done.returncode == 0, f"{arguments} with {env}: {done.stderr}")
    return re.sub(" +", " ", done.stdout)


def check_found(manifest, pservers, hosts):
    """Trainer 1 and pserver 0 find what they need, where the engine put it."""
    command, env = start(manifest, 1, 1)
    check(command[0] == "weft" and command[1] == "train", f"the trainers' command is {command}")
    shown = weft_shows([*command[1:], "--print_options"], env)
    check("\njob_name = w2v # WEFT_JOB_NAME" in "\n" + shown, f"no name of the job in {shown}")
    addresses = ",".join(f"{host}" for host in hosts)
    for line in ("\ntrainer_id = 1 # ", "\nnum_gradient_servers = 4 # ", f"\npservers = {addresses} # ",
                 "\nport = 7300 # ", "\nports_num = 2 # ", "\nports_num_for_sparse = 1 # "):
        check(line in "\n" + shown, f"no {line!r} in {shown}")
    rows = weft_shows(["env", "--role=trainer"], env).splitlines()
    for setting in ("trainer_id 1", "num_gradient_servers 4", "pservers"):
        used = [r for r in rows if r.startswith(setting + " ") and r.endswith(" used")]
        check(len(used) == 1, f"{setting}: {used} of {rows}")
    check(not [r for r in rows if "does not know" in r], f"unknown variables: {rows}")
    command, env = start(manifest, 0, 0)
    check(command[:2] == ["weft", "pserver"], f"the pservers' command is {command}")
    shown = weft_shows([*command[1:], "--print_options"], env)
    for line in ("\nnum_gradient_servers = 4 # argument", "\nport = 7300 # argument", "\nonce = true # argument",
                 "\nlisten = 0.0.0.0 # argument", "\nports_num = 2 # argument"):
        check(line in "\n" + shown, f"no {line!r} in {shown}")
    probe = container(manifest, 0)["startupProbe"]["tcpSocket"]
    check(probe == {"port": 7300}, f"probe {probe}")
    ports = [p["containerPort"] for p in container(manifest, 0)["ports"]]
    check(ports == [7300, 7301, 7302], f"ports {ports}")
    check(pservers == len(hosts), "pservers")


def check_stop(kind):
    """Who is stopped has the time to save that the engine gives, and knows it."""
    job = ["--image=x", "--trainers=4", "--save_on_term", "--term_grace=90s"]
    manifest = load(run(kind, *job, "--", "train", "linear", "--save_dir=/data"))
    for which, program in ((0, "pserver"), (1, "train")):
        command, env = start(manifest, which, 0)
        shown = weft_shows([*command[1:], "--print_options"], env)
        check("\nsave_on_term = true # WEFT_" in shown, f"{program}: {shown}")
        check("\nterm_grace = 90s # WEFT_" in shown or "\nterm_grace = 1.5m # WEFT_" in shown, f"{program}: {shown}")
        seconds = at(manifest, pod_path(manifest, which))["terminationGracePeriodSeconds"]
        check(seconds == 95, f"{program}: {seconds} s until it is killed")


def manifests():
    plain = ["--image=registry:5000/weft:1", "--job_name=w2v"]
    job = [*plain, "--pservers=2", "--trainers=4", "--port=7300", "--ports_num=2", "--ports_num_for_sparse=1"]
    more = [*job, "--cpu=2", "--memory=1.5Gi", "--pscpu=500m", "--psmemory=100M", "--registry=mine",
            "--volume=pvc:data:/data", "--volume=host:/srv/data/:/mnt/seqdata:ro", "--env=A=b", "--env", "C=d=e",
            "--workdir=/data/x y", "--num_passes=3", "--term_grace=60s", "--restarts=0"]
    for kind in ("volcano", "jobset"):
        for arguments in (plain, job, more):
            check_fields(load(run(kind, *arguments, "--", "train", "linear")))
        check_fields(load(run(kind, *more, "--gpu=1", "--", "python3", "train.py")))
        check_fields(load(run(kind, *plain, "--entry=python3 train.py")))
        full = load(run(kind, *more, "--", "train", "linear"))
        pod = at(full, pod_path(full, 0))
        check(pod["terminationGracePeriodSeconds"] == 65, "grace")
        check(pod["restartPolicy"] == "Never", "restart policy")
        check(container(full, 1)["resources"]["limits"] == {"cpu": "2", "memory": "1.5Gi"}, "resources")
        check([m["mountPath"] for m in container(full, 1)["volumeMounts"]] == ["/data", "/mnt/seqdata"], "mounts")
        check("RestartJob" not in str(full), "a job that does not start again has RestartJob")
        env = start(full, 1, 0)[1]
        check((env["A"], env["C"], env["PADDLE_INIT_NUM_PASSES"]) == ("b", "d=e", "3"), "variables")
    volcano = load(run("volcano", *job, "--queue=blue", "--", "train", "linear"))
    check_fields(volcano)
    check(volcano["spec"]["minAvailable"] == 6 and volcano["spec"]["queue"] == "blue", "gang and queue")
    check_found(volcano, 2, ["w2v-pserver-0.w2v", "w2v-pserver-1.w2v"])
    jobset = load(run("jobset", *job, "--", "train", "linear"))
    check_found(jobset, 2, ["w2v-pserver-0-0.w2v:7300", "w2v-pserver-0-1.w2v:7300"])
    check(start(jobset, 0, 1)[1]["WEFT_REGISTRAR"] == "w2v-pserver-0-0.w2v:7300", "WEFT_REGISTRAR")
    check_stop("volcano")
    check_stop("jobset")
    alone = load(run("volcano", *plain, "--trainers=3", "--", "x"))
    check([t["replicas"] for t in alone["spec"]["tasks"]] == [3, 3], "as many pservers as trainers")


def limits():
    """Nothing is cut: what is as long as it may be is whole, and what is longer is refused by name."""
    name, path = "N" * 255, "/" + "p" * 4094
    address = "h" * 255
    full = run("volcano", "--image=x", f"--env={name}=v", f"--volume=host:{path}:{path}", f"--listen={address}",
               f"--secret_file={path}", "--", "x")
    check(f"--from-file=secret={path}\n" in full, "the secret's path is cut")
    manifest = load(full)
    pod = at(manifest, pod_path(manifest, 0))
    check(name in [entry["name"] for entry in container(manifest, 1)["env"]], "the variable's name is cut")
    check(container(manifest, 0)["volumeMounts"][-1]["mountPath"] == path, "the volume's path is cut")
    check(pod["volumes"][-1]["hostPath"]["path"] == path, "the volume's folder is cut")
    check(f"--listen={address}" in container(manifest, 0)["command"], "the address is cut")
    for kind, option, value in (
        ("volcano", "env", f"N{name}=v"), ("jobset", "volume", f"host:{path}q:/x"), ("jobset", "volume", f"host:/x:{path}q"),
        ("volcano", "listen", f"{address}h"), ("volcano", "secret_file", f"{path}q"), ("slurm", "listen", f"{address}h"),
    ):
        image = [] if kind == "slurm" else ["--image=x"]
        said = run(kind, *image, f"--{option}={value}", "--", "x", code=64)
        check(f"--{option}=" in said and "are the most" in said, f"{option}: {said}")
    for limit, written in (("00:30:00", "0-00:30:00"), ("30:00:01", "1-06:01:00"), ("1-02:03:00", "1-02:03:00")):
        check(f"--time={written}\n" in run("slurm", f"--time_limit={limit}", "--", "x"), f"time_limit={limit}")
    slurm = ["slurm", "--time_limit=2880m"]
    check("--signal=TERM@65535\n" in run(*slurm, "--term_grace=65530s", "--", "x"), "the longest grace")
    check("Slurm allows 65530 s" in run(*slurm, "--term_grace=65531s", "--", "x", code=64), "a longer one")
    check("Leave replicas at 1:" in run("jobset", "--image=x", "--", "x"), "no note on the index")
    check("Leave the tasks their names, pserver and trainer:" in full, "no note on the tasks")


def secrets():
    """The object and where a pod has it."""
    base = ["--image=x", "--job_name=w2v"]
    for kind in ("volcano", "jobset"):
        documents = list(yaml.safe_load_all(run(kind, *base, "--secret", "--", "train", "linear")))
        again = list(yaml.safe_load_all(run(kind, *base, "--secret", "--", "train", "linear")))
        text = run(kind, *base, "--secret_file=/run/keys/job", "--", "train", "linear")
        line = "# Before that: kubectl create secret generic w2v-secret --from-file=secret=/run/keys/job\n"
        check(line in text, "no line that makes the object")
        odd = run(kind, *base, "--secret_file=a\nb: c", "--", "x")
        check("--from-file=secret=FILE\n" in odd and load(odd), "a name that is no word")
        (secret, manifest), named = documents, load(text)
        check(kind_of(secret) == "v1 Secret" and not faults(secret, "v1 Secret", ""), f"{secret}")
        check(secret["metadata"]["name"] == "w2v-secret", "name of the object")
        check(len(base64.b64decode(secret["data"]["secret"], validate=True)) == 32, "32 bytes")
        check(secret["data"] != again[0]["data"], "the same secret twice")
        check(manifest == named, "a secret that is made, and one of a file, are used differently")
        check_fields(manifest)
        for which in (0, 1):
            pod = at(manifest, pod_path(manifest, which))
            volume = {"name": "secret", "secret": {"secretName": "w2v-secret", "defaultMode": 0o400}}
            check(pod["volumes"] == [volume], f"volumes {pod['volumes']}")
            (mount,) = container(manifest, which)["volumeMounts"]
            path = start(manifest, which, 0)[1]["WEFT_SECRET_FILE"]
            wanted = {"name": "secret", "mountPath": path, "subPath": "secret", "readOnly": True}
            check(mount == wanted, f"mount {mount}")
    old = os.umask(0o022)
    run("volcano", *base, "--secret", "--out=secret.yaml", "--", "x")
    os.umask(old)
    check(os.stat("secret.yaml").st_mode & 0o777 == 0o600, "others read the manifest")


def arguments_survive():
    env = ["--env=X" + str(i) + "=" + text for i, text in enumerate(NASTY)]
    for kind in ("volcano", "jobset"):
        manifest = load(run(kind, "--image=x", *env, "--", "program", *NASTY))
        command, got = start(manifest, 1, 0)
        check(command == ["program", *NASTY], f"{kind}: {command}")
        check([got["X" + str(i)] for i in range(len(NASTY))] == NASTY, f"{kind}: variables")
        for entry in NASTY[::5]:
            if entry:
                words = start(load(run(kind, "--image=x", "--entry=" + entry)), 1, 0)[0]
                check(words[0] == "sh" and words[-1] == entry, f"{kind}: entry {words}")
    shown = 'echo "$PADDLE_INIT_TRAINER_ID of $PADDLE_INIT_NUM_GRADIENT_SERVERS"; echo "$A"; echo \'$(A)\''
    for kind in ("volcano", "jobset"):
        manifest = load(run(kind, "--image=x", "--trainers=3", "--env=A=$(B) c", "--entry", shown))
        command, env = start(manifest, 1, 2)
        out = subprocess.run(command, env=dict(env, PATH=os.environ["PATH"]), capture_output=True, text=True).stdout
        check(out == "2 of 3\n$(B) c\n$(A)\n", f"{kind}: the entry printed {out!r}")
    bad = b"\xff\xfe"
    check("UTF-8" in run("volcano", "--image=x", "--", "program", bad, code=64), "no UTF-8")
    check("UTF-8" in run("jobset", "--image=x", "--", "program", b"\xc0\x80", code=64), "no UTF-8")


# ---- the original's client ----

SUBMIT = ["-jobname", "my-paddlecloud-job", "-cpu", "1", "-gpu", "0", "-memory", "1Gi", "-parallelism", "10",
          "-pscpu", "1", "-pservers", "3", "-psmemory", "1Gi", "-passes", "1", "-image=x", "-registry", "mine",
          "-faulttolerant=false", "-topology", "", "-entry", "python train.py", "/pfs/dc/home/user/ctr_demo_package"]
OURS = ["--job_name=my-paddlecloud-job", "--cpu=1", "--memory=1Gi", "--trainers=10", "--pscpu=1", "--pservers=3",
        "--psmemory=1Gi", "--num_passes=1", "--image=x", "--registry=mine", "--entry=python train.py",
        "--workdir=/pfs/dc/home/user/ctr_demo_package"]


def client():
    submitted = run("volcano", *SUBMIT)
    check(submitted == run("volcano", *OURS), "a submit line and our options differ")
    check_fields(load(submitted))
    dashes = [re.sub("^-", "--", word) for word in SUBMIT]
    check(submitted == run("volcano", *dashes), "two dashes, as Go's flags allow")
    base = ["volcano", "--image=x", "-entry", "x"]
    for words, replaced in (
        (["-topology", "conf.py"], "train MODEL"),
        (["-datacenter", "dc1"], "kubectl --context"),
        (["-min_instance", "1"], "-parallelism"),
        (["-max_instance=3"], "-parallelism"),
        (["-faulttolerant"], "--restarts"),
        (["-jobname"], "value is missing"),
        (["-nonsense", "1"], "-nonsense"),
        (["-jobname", "with_underscore"], "--job_name=with_underscore"),
        (["pfs/relative"], "absolute"),
    ):
        check(replaced in run(*base, *words, code=64), f"{words}: {replaced} is not named")


# ---- scripts ----


def engine(folder):
    """Stand-ins for srun, scontrol and mpirun, which refuse what they do not know."""
    bin_folder = os.path.join(folder, "bin")
    os.makedirs(bin_folder, exist_ok=True)
    for name in ("srun", "mpirun", "scontrol"):
        path = os.path.join(bin_folder, name)
        with open(path, "w") as out:
            out.write(f"#!/bin/sh\nexec {sys.executable} '{HERE}/gen_engine.py' {name} \"$@\"\n")
        os.chmod(path, 0o755)
    return dict(os.environ, PATH=bin_folder + ":" + os.environ["PATH"])


def script(kind, folder, env, *arguments, words=(), code=0):
    text = run(kind, *arguments)
    check(text.startswith("#!/bin/bash\n"), "no script")
    path = os.path.join(folder, kind + ".sh")
    with open(path, "w") as out:
        out.write(text)
    subprocess.run(["bash", "-n", path], check=True)
    if kind == "slurm":
        env = dict(env, SLURM_JOB_NODELIST="127.0.0.1")
    done = subprocess.run(["bash", path, *words], env=env, capture_output=True, timeout=120)
    check(done.returncode == code, f"{kind}: exit code {done.returncode}, not {code}: {done.stderr.decode()}")
    return done.stdout


def scripts(port):
    folder = os.getcwd()
    env = engine(folder)
    printer = [sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))"]
    train = ["train", "linear", "--num_passes=2"]
    job = [f"--port={port}", f"--weft={WEFT}", "--listen=127.0.0.1"]
    oracle = subprocess.run([WEFT, *train, "--sequential", "--num_gradient_servers=2"], capture_output=True).stdout
    with open("hosts", "w") as out:
        out.write("# two names for one\n127.0.0.1 slots=4 # here\n\n127.0.0.1\n")
    for kind in ("slurm", "mpi"):
        more = [] if kind == "mpi" else ["--cpu=1", "--pscpu=1", "--nodes=1", "--time_limit=90m", "--queue=batch"]
        words = ["hosts"] if kind == "mpi" else []
        got = script(kind, folder, env, *job, *more, "--trainers=2", "--", *train, words=words)
        check(got == oracle, f"{kind}: {got!r} is not what one process prints, {oracle!r}")
        secret = os.path.join(folder, "secret")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(os.urandom(32))
        hidden = [*job, *more, "--trainers=2", "--secret_file=" + secret]
        got = script(kind, folder, env, *hidden, "--", *train, words=words)
        check(got == oracle, f"{kind} with a secret: {got!r}")
        got = script(kind, folder, env, "--weft=/bin/true", hidden[-1], "--entry", "echo $WEFT_SECRET_FILE")
        check(got.decode() == secret + "\n", f"{kind}: {got!r}")
        variables = ["--env=X" + str(i) + "=" + text for i, text in enumerate(NASTY)]
        idle = ["--weft=/bin/true", *variables]
        got = script(kind, folder, env, *idle, "--", *printer, *NASTY)
        check(json.loads(got) == NASTY, f"{kind}: {got!r}")
        names = "[os.environ['X%d' % i] for i in range(" + str(len(NASTY)) + ")]"
        values = [sys.executable, "-c", f"import json, os; print(json.dumps({names}))"]
        got = script(kind, folder, env, *idle, "--", *values)
        check(json.loads(got) == NASTY, f"{kind}: variables {got!r}")
        entry = 'echo "$PADDLE_INIT_TRAINER_ID/$PADDLE_INIT_NUM_GRADIENT_SERVERS $WEFT_PSERVERS"'
        got = script(kind, folder, env, "--weft=/bin/true", "--pservers=3", "--ports_num=2", "--entry", entry)
        check(got == b"0/1 127.0.0.1:7164,127.0.0.1:7166,127.0.0.1:7168\n", f"{kind}: entry {got!r}")
        script(kind, folder, env, "--weft=/bin/true", "--entry", "exit 3", code=3)
        got = script(kind, folder, env, "--weft=/bin/true", "--job_name=my.job_1", "--entry", "echo $WEFT_JOB_NAME")
        check(got == b"my.job_1\n", f"{kind}: the name of the job is {got!r}")
    with open("two", "w") as out:
        out.write("127.0.0.1\n127.0.0.2\n")
    turns = ["--weft=/bin/true", "--pservers=3", "--ports_num=2", "--entry", "echo $WEFT_PSERVERS"]
    got = script("mpi", folder, env, *turns, words=["two"])
    check(got == b"127.0.0.1:7164,127.0.0.2:7164,127.0.0.1:7166\n", f"two hosts for three pservers: {got!r}")
    # Trainers alone would wait for pservers that nobody starts.
    alone = ["--weft=/bin/true", "--entry", "echo started"]
    check(script("mpi", folder, env, *alone, words=["absent"], code=64) == b"", "trainers without pservers")
    check(script("slurm", folder, dict(env, WITHOUT_HOSTS="1"), *alone, code=64) == b"", "trainers without pservers")
    # A pserver that fails ends a job whose trainers would go on.
    script("mpi", folder, env, "--weft=/bin/false", "--entry", "exec sleep 100", code=1)
    stop = ["--save_on_term", "--term_grace=90s", "--time_limit=1m", "--weft=/bin/true"]
    got = script("slurm", folder, env, *stop, "--entry", "echo $WEFT_SAVE_ON_TERM $WEFT_TERM_GRACE")
    check(got == b"true 90000ms\n", f"a stop under Slurm: {got!r}")
    check("#SBATCH --signal=TERM@95\n" in run("slurm", *stop, "--", "x"), "seconds from the signal to the end")
    head = run("slurm", "--nodes=2", "--time_limit=90m", "--queue=a b", "--sbatch=--account=x", "--", "x").split("\n\n")[0]
    for line in ("--nodes=2", "--time=0-01:30:00", "--signal=TERM@30", "--partition='a b'", "--account=x", "--ntasks=2"):
        check(f"#SBATCH {line}\n" in head + "\n", f"no {line} in {head}")


# ---- what is refused ----


def refusals():
    image = "--image=x"
    program = ["--", "x"]
    for arguments, text in (
        ([], "the kind is missing"),
        (["nonsense", *program], "no kind"),
        (["volcano", *program], "--image is missing"),
        (["slurm", image, *program], "--image is for volcano and jobset, not for slurm"),
        (["mpi", "--cpu=1", *program], "--cpu is for slurm and volcano and jobset"),
        (["slurm", "--volume=pvc:a:/b", *program], "--volume is for"),
        (["slurm"], "no program is given"),
        (["slurm", "--entry=x", *program], "give one of them"),
        (["slurm", "--", "train"], "the model is missing"),
        (["slurm", "--", "train", "transformer"], "there is no such model; give one of: linear, mlp"),
        (["slurm", "--", "train", "--num_passes=1"], "there is no such model"),
        (["slurm", "--", "train", "linear", "--trainer_id=0"], "--trainer_id=0 after --: the job gives"),
        (["jobset", image, "--", "train", "linear", "--trainer-id", "0"], "--trainer-id after --: the job gives"),
        (["slurm", "--", "train", "linear", "--pservers=a:1"], "leave it out, or change it before --"),
        (["slurm", "--time_limit=30:00", *program], "must be a duration"),
        (["slurm", "--job_name=a b", *program], "--job_name"),
        (["slurm", "--cpu=1.5", *program], "whole number"),
        (["slurm", "--sbatch=a\nrm", *program], "one line"),
        (["slurm", "--port=65535", "--pservers=2", *program], "past 65535"),
        (["jobset", image, "--job_name=Upper", *program], "--job_name"),
        (["jobset", image, "--job_name=9a", *program], "begin with"),
        (["jobset", image, "--job_name=" + "a" * 43, *program], "at most 42"),
        (["jobset", image, "--cpu=two", *program], "--cpu=two"),
        (["jobset", image, "--cpu=0", *program], "--cpu=0"),
        (["jobset", image, "--memory=1GB", *program], "--memory=1GB"),
        (["jobset", image, "--memory=1.Gi", *program], "--memory=1.Gi"),
        (["jobset", image, "--queue=q", *program], "--queue is for slurm and volcano, not for jobset"),
        (["jobset", image, "--gpu=1", "--", "train", "linear"], "no GPU code"),
        (["jobset", image, "--env=1A=b", *program], "NAME=VALUE"),
        (["jobset", image, "--env=A", *program], "NAME=VALUE"),
        (["jobset", image, "--volume=nfs:a:/b", *program], "--volume"),
        (["jobset", image, "--volume=pvc:A_b:/b", *program], "--volume"),
        (["jobset", image, "--volume=pvc:a:b", *program], "--volume"),
        (["jobset", image, "--volume=host:a:/b", *program], "--volume"),
        (["jobset", image, "--volume=pvc:a:/b:rw", *program], "--volume"),
        (["jobset", image, "--volume=pvc:a:/b", "--volume=pvc:c:/b", *program], "another volume"),
        (["mpi", "--save_on_term", *program], "--save_on_term is for"),
        (["slurm", "--secret", *program], "--secret is for"),
        (["jobset", image, "--secret", "--secret_file=x", *program], "one of them"),
        (["jobset", image, "--trainers=4097", *program], "--trainers"),
    ):
        err = run(*arguments, code=64)
        check(text in err, f"{arguments}: {text!r} is not in {err!r}")
    run("slurm", "--out=job.sh", *program)
    check(open("job.sh").read() == run("slurm", *program), "--out")
    check("job.sh" in run("slurm", "--out=job.sh", *program, code=74), "an existing file")
    # Where pserver 0 listens, for those that take snapshots together; one alone needs nothing.
    several = run("slurm", "--port=7300", "--pservers=2", *program)
    check('--registrar="${hosts[0]}:7300" --once' in several, "--registrar")
    check("--registrar" not in run("slurm", "--pservers=1", *program), "--registrar of one pserver")
    # Somebody's address of pservers is no number of them.
    check("#SBATCH --ntasks=2\n" in run("slurm", *program, env=dict(os.environ, WEFT_PSERVERS="a:1,b:2")), "WEFT_PSERVERS")


manifests()
secrets()
limits()
arguments_survive()
client()
refusals()
scripts(int(sys.argv[1]))
