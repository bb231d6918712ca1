/* SPDX-License-Identifier: Apache-2.0 */
/* first_step.c in C++17: the session is an object that ends itself, and a status that is not good is
 * an exception with the library's text.
 *
 *     c++ -std=c++17 -o first_step_cxx first_step.cc $(pkg-config --cflags --libs weft)
 *     weft pserver --once &
 *     ./first_step_cxx [HOST:PORT]            (127.0.0.1:7164 if none is named) */
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include <weft/weft.h>

namespace {

constexpr int samples = 8;

void
check(enum weft_status status)
{
	if (status != WEFT_OK) {
		throw std::runtime_error(std::string(weft_status_name(status)) + ": " +
					 weft_last_error());
	}
}

/* Who leaves in the middle of a job says so to the others. */
struct end_session {
	void
	operator()(weft_session *session) const
	{
		weft_session_abort(session, WEFT_ABORTED, "the trainer gave up");
	}
};
using session_ptr = std::unique_ptr<weft_session, end_session>;

void
train(const char *pservers)
{
	weft_session_opts opts;
	weft_session_opts_init(&opts);
	opts.pservers = pservers;
	opts.grad_reduce = WEFT_REDUCE_MEAN;
	opts.optimizer.learning_rate = 0.5;
	weft_session *opened = nullptr;
	check(weft_session_open(&opts, &opened));
	session_ptr session(opened);
	weft_tensor_opts declared{};
	declared.name = "line";
	declared.rows = 2;
	weft_tensor *line = nullptr;
	check(weft_tensor_add(session.get(), &declared, &line));
	check(weft_session_seal(session.get()));
	check(weft_session_start(session.get()));

	float *param = weft_tensor_param(line), *grad = weft_tensor_grad(line);
	for (int step = 0; step < 200; step++) {
		double cost = 0;
		grad[0] = grad[1] = 0;
		for (int i = 0; i < samples; i++) {
			float x = static_cast<float>(i) / samples, y = 2 * x + 1;
			float error = param[0] * x + param[1] - y;
			grad[0] += error * x;
			grad[1] += error;
			cost += 0.5 * static_cast<double>(error * error);
		}
		check(weft_exchange(session.get(), samples, cost));
	}
	std::printf("y = %.3f x + %.3f\n", static_cast<double>(param[0]),
		    static_cast<double>(param[1]));
	check(weft_session_close(session.release())); /* frees it in any case */
}

} // namespace

int
main(int argc, char **argv)
{
	try {
		train(argc > 1 ? argv[1] : "127.0.0.1:7164");
	} catch (const std::exception &error) {
		std::fprintf(stderr, "%s\n", error.what());
		return 1;
	}
	return 0;
}
