# A thin front door to Meson and ninja. `make help` lists what there is.

BUILD ?= build
MESON ?= meson
CLANG ?= clang
FUZZ_SECONDS ?= 60
BENCH_ARGS ?=
JOBS ?=
NINJA_JOBS := $(if $(JOBS),-j$(JOBS),)
prefix ?= /usr/local

C_FILES = $(shell git ls-files --cached --others --exclude-standard 'src/*.[ch]' 'tests/*.[ch]' 'bench/*.[ch]')

.DEFAULT_GOAL := all

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

all: deps-build $(BUILD)/build.ninja ## build build/karve, and the test tools in build/tests
	@ninja -C $(BUILD) $(NINJA_JOBS) --quiet karve tests/toml-decode tests/toml-encode

$(BUILD)/build.ninja:
	@$(MESON) setup $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@mkdir -p $(BUILD) && mv $(BUILD).log $(BUILD)/setup.log

DEMO_EXPLAIN = -f examples/shop/nodepools.yaml -f examples/shop/nodeclasses.yaml -f examples/too-big.yaml --explain reindex

demo: all ## set up, build, and run the main job: plan a cluster, then live through a Black Friday
	@printf '\n# A web shop as its operators keep it: what would be launched for it, and what does that cost?\n'
	@printf '$$ karve plan -f examples/shop --check\n\n'
	@$(BUILD)/karve plan -f examples/shop --check
	@printf '\n# A pod that asks for too much: why does it fit nowhere?\n'
	@printf '$$ karve plan %s\n\n' "$(DEMO_EXPLAIN)"
	@$(BUILD)/karve plan $(DEMO_EXPLAIN) || test $$? -eq 1
	@printf '\n# The control plane on a Black Friday: 2,000 pods arrive, a zone runs dry, an image is broken.\n'
	@printf '$$ karve simulate black-friday --report $(BUILD)/black-friday.html\n\n'
	@$(BUILD)/karve simulate black-friday --report $(BUILD)/black-friday.html
	@printf '\nThe same day as a page with plots: $(BUILD)/black-friday.html\n'

check: deps-check $(BUILD)/build.ninja ## set up, build, and run every test
	@ninja -C $(BUILD) $(NINJA_JOBS) --quiet
	@scripts/test.sh $(BUILD)

e2e: deps-check $(BUILD)/build.ninja ## run against a real Kubernetes, built once (needs Go)
	@ninja -C $(BUILD) $(NINJA_JOBS) --quiet
	@scripts/e2e.sh $(BUILD)

bench: deps-check $(BUILD)/build.ninja ## run the benchmarks (BENCH_ARGS=--small for the short ones)
	@ninja -C $(BUILD) $(NINJA_JOBS) --quiet
	@scripts/bench.sh $(BUILD) $(BENCH_ARGS)

fuzz: deps-fuzz ## fuzz every target for FUZZ_SECONDS each (60), starting from its corpus
	@test -f $(BUILD)-fuzz/build.ninja || CC=$(CLANG) $(MESON) setup $(BUILD)-fuzz -Dfuzz=true -Dtests=false \
		$(SANITIZED) -Db_sanitize=address,undefined >/dev/null
	@ninja -C $(BUILD)-fuzz $(NINJA_JOBS) --quiet
	@scripts/fuzz.sh $(BUILD)-fuzz $(FUZZ_SECONDS)

# Sanitizers make compilers slow: half the time of -O2 -g goes into what nobody looks at.
SANITIZED = -Dbuildtype=debug -Doptimization=1 -Dc_args=-g1 -Db_lundef=false

sanitize: sanitize-address sanitize-thread ## run the tests under the sanitizers

sanitize-address: deps-check ## address and undefined behaviour
	@test -f $(BUILD)-asan/build.ninja || $(MESON) setup $(BUILD)-asan $(SANITIZED) -Db_sanitize=address,undefined >/dev/null
	@ninja -C $(BUILD)-asan $(NINJA_JOBS) --quiet
	@UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1 scripts/test.sh $(BUILD)-asan

# Rooms and tests without threads have no races.
THREADLESS = bootstrap sched corpus one-thread

sanitize-thread: deps-check ## data races
	@test -f $(BUILD)-tsan/build.ninja || $(MESON) setup $(BUILD)-tsan $(SANITIZED) -Db_sanitize=thread >/dev/null
	@ninja -C $(BUILD)-tsan $(NINJA_JOBS) --quiet
	@TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 scripts/test.sh $(BUILD)-tsan $(THREADLESS:%=--no-suite %)

coverage: deps-coverage ## a map of what the tests forgot: build-cov/coverage.html
	@test -f $(BUILD)-cov/build.ninja || $(MESON) setup $(BUILD)-cov -Dbuildtype=debug -Db_coverage=true >/dev/null
	@ninja -C $(BUILD)-cov $(NINJA_JOBS) --quiet
	@scripts/test.sh $(BUILD)-cov
	@gcovr --root . --filter 'src/' --exclude '.*_(test|fuzz|bench)\.c' --html-details $(BUILD)-cov/coverage.html \
		--print-summary $(BUILD)-cov

format: deps-lint ## lay out the code
	@clang-format -i $(C_FILES)

format-check: deps-lint ## is the code laid out?
	@clang-format --dry-run --Werror $(C_FILES)

tidy: deps-lint $(BUILD)/build.ninja ## clang-tidy
	@clang-tidy --quiet -p $(BUILD) $(filter %.c,$(filter src/%,$(C_FILES)))

reference: all ## write the field reference in docs/reference from the tables
	@for kind in nodepool nodeclaim nodeoverlay ec2nodeclass kwoknodeclass; do \
		$(BUILD)/karve crds $$kind -o markdown >docs/reference/$$kind.md || exit 1; \
	done

rooms: ## does each room include only the rooms above it?
	@tests/rooms.sh

install: all ## install to DESTDIR and prefix (/usr/local)
	@$(MESON) configure $(BUILD) -Dprefix=$(prefix)
	@ninja -C $(BUILD) $(NINJA_JOBS) --quiet >/dev/null
	@$(MESON) install -C $(BUILD) --no-rebuild --quiet $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)),)

clean: ## remove every build folder
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz $(BUILD)-cov

deps-%:
	@scripts/deps.sh $*

.PHONY: help all demo check e2e bench fuzz sanitize sanitize-address sanitize-thread coverage format \
	format-check tidy reference rooms install clean
