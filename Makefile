# SPDX-License-Identifier: Apache-2.0
# Short recipes over Meson; the work is in .ci/. Each recipe does its own set-up: it installs the
# distribution packages that are missing when it may, or prints the one line to run.

BUILD ?= build
PREFIX ?= /usr/local
export CMD

all: build

demo: build ## build, then train the demonstration job: two pservers, two trainers, real data
	$(BUILD)/tools/weft demo

build: ## configure and build in $(BUILD)
	@.ci/setup build
	@.ci/build $(BUILD)

quick: ## for the inner loop: unit tests and tidiness, about a minute once it is built
	@.ci/setup check
	@.ci/check quick

check: ## all test suites: gcc, sanitizers, fuzz corpora, installed prefix (STAGES="gcc tsan": some)
	@.ci/setup check
	@.ci/check $(STAGES)

check-all: ## other compilers and options, long runs (STAGES="clang release": some)
	@.ci/setup check-all
	@.ci/check-all $(STAGES)

check-bare: ## `make demo` and `make check` of HEAD in a fresh minimal Debian 12 (needs root)
	@.ci/check-bare

guest: build ## run CMD='weft demo' in QEMU with soft RDMA devices (GUEST="-t 300": options)
	@.ci/setup guest
	@tests/guest/run -b $(BUILD) $(GUEST) sh -c "$${CMD:?say what to run: CMD=...}"

install: build ## install under $(PREFIX), below $(DESTDIR)
	@.ci/build $(BUILD) -Dprefix=$(PREFIX)
	meson install -C $(BUILD) --no-rebuild --quiet

abi-dump: ## after a change that is meant: trainer/libweft.map and tests/abi/libweft.xml as they are now
	@.ci/setup check
	@tests/abi/abi.py dump $(BUILD)

format: ## run clang-format on every C file
	@.ci/format

clean: ## remove what building and checking left
	rm -rf $(BUILD) build-check

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

.PHONY: all demo build quick check check-all check-bare guest install abi-dump format clean help
