/**
 * The HTTP application: request ids, the access log, secure headers, errors as answers, and the router made from the
 * routes.
 */
import { randomUUID } from 'node:crypto';
import Koa, { type Context, type Middleware } from 'koa';
import type { Logger } from 'pino';
import { tracingOn } from '../../tracing/spans.js';
import { CALLER_LEFT, CallerLeftError, brokenByCaller } from './callerLeft.js';
import { HttpError, answerOf } from './errors.js';
import { type PipelineDeps, allowOf, serve } from './pipeline.js';
import { requestSpan } from './requestSpan.js';
import type { RequestState } from './requestState.js';
import type { Route } from './route.js';
import { type Router, allowedAt, createRouter } from './router.js';
import { setCommonHeaders } from './send.js';

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** What the application is made of. */
export interface ServerDeps extends PipelineDeps {
  readonly logger: Logger;
  /** What is served beside the routes: the description, the docs, health. */
  readonly beside?: readonly Middleware[];
  /** Told of every answer. */
  readonly onAnswer?: OnAnswer | undefined;
}

/** Told of an answer: it must be quick, and not throw. `route`: the route's pattern; `undefined`: no route of ours. */
export type OnAnswer = (method: string, route: string | undefined, status: number, milliseconds: number) => void;

/** Builds the Koa application that serves the routes. */
export function httpApplication(routes: readonly Route[], deps: ServerDeps): Koa {
  // Koa asks of each streamed body whether it is one, and at the first mention Node loads its whole HTTP client: 25 to
  // 40 ms for which all answers would wait.
  void globalThis.Response;
  const router = createRouter(routes, (route) => serve(route, deps, allowedAt(routes, route.path)));
  return application(deps.logger, deps.beside ?? [], { router, onAnswer: deps.onAnswer });
}

/** What an application may have beside its middlewares. */
export interface ApplicationOptions {
  /** Its routes set the common headers themselves. */
  readonly router?: Router;
  readonly onAnswer?: OnAnswer | undefined;
}

/**
 * An application of these middlewares, with what holds for every answer around them; what none of them answers is 404
 * or 405.
 */
export function application(
  logger: Logger,
  middlewares: readonly Middleware[],
  { router, onAnswer }: ApplicationOptions = {},
): Koa {
  const app = new Koa();
  if (tracingOn()) app.use(requestSpan);
  app.use(outermost(logger, router, onAnswer));
  app.use((ctx, next) => {
    setCommonHeaders(ctx);
    return next();
  });
  for (const middleware of middlewares) app.use(middleware);
  app.use(unmatched(router));
  // Koa prints to the console what escapes a response that has begun; here it goes to the log.
  const told = new WeakSet<object>();
  app.on('error', (error: object, ctx: Context) => {
    // By Koa and by the response's own stream.
    if (told.has(error)) return;
    told.add(error);
    const { requestId: req } = ctx.state as RequestState;
    // Any caller could fill the log with warnings that nobody has to see to.
    if (brokenByCaller(error)) logger.info({ req }, 'a caller left before all of the response was sent');
    else logger.warn({ req, err: error }, 'a response could not be sent whole');
  });
  return app;
}

/** A known path with another method: 405 with `Allow`; anything else: 404. */
function unmatched(router: Router | undefined): Middleware {
  return (ctx) => {
    const known = router?.others(ctx.path);
    if (known === undefined) throw new HttpError('not_found');
    (ctx.state as RequestState).route = known.path;
    throw new HttpError('method_not_allowed', { headers: { Allow: known.methods.join(', ') } });
  };
}

/** Names the request, has its route answer it, turns what was thrown into an answer, writes the access log. */
function outermost(logger: Logger, router: Router | undefined, onAnswer: OnAnswer | undefined): Middleware {
  return async (ctx, next) => {
    const started = performance.now();
    const state = ctx.state as RequestState;
    const asked = ctx.headers['x-request-id'];
    state.requestId = typeof asked === 'string' && REQUEST_ID.test(asked) ? asked : randomUUID();
    try {
      const path = pathOf(ctx);
      const found = router?.find(ctx.method, path);
      await (found === undefined ? next() : found.answer(ctx, found.params));
    } catch (error) {
      answerError(ctx, error, logger);
    }
    const took = performance.now() - started;
    onAnswer?.(ctx.method, state.route, ctx.status, took);
    logger.info(
      {
        req: state.requestId,
        method: ctx.method,
        // A path that is none of ours may hold anything: an id with a typing error, a phone number.
        route: state.route ?? 'unknown',
        status: ctx.status,
        ms: Math.round(took * 10) / 10,
        ...callerOf(state),
      },
      'request',
    );
  };
}

/**
 * The request's path. @throws HttpError `not_found` for a target that can't be read: an absolute one whose host is none
 * (RFC 9112 3.2.2). Nothing of ours is there.
 */
function pathOf(ctx: Context): string {
  // Koa's type says nothing of null.
  let path: string | null = null;
  try {
    ({ path } = ctx);
  } catch {
    // As one without a path.
  }
  if (path === null) throw new HttpError('not_found');
  return path;
}

function callerOf({ principal }: RequestState): object {
  if (principal === undefined || principal.kind === 'anonymous') return {};
  return principal.kind === 'user'
    ? { user: principal.user.id, client: principal.clientId }
    : { client: principal.clientId };
}

function answerError(ctx: Context, error: unknown, logger: Logger): void {
  if (error instanceof CallerLeftError) {
    ctx.respond = false;
    ctx.status = CALLER_LEFT;
    // Whoever only sends no more must not wait for what will never come.
    ctx.res.destroy();
    return;
  }
  const told = answerOf(error);
  if (told.unforeseen) {
    const level = told.status === 500 ? 'error' : 'warn';
    logger[level](
      { req: (ctx.state as RequestState).requestId, err: error },
      told.status === 500 ? 'request failed' : 'an engine was unavailable',
    );
  }
  setCommonHeaders(ctx);
  ctx.status = told.status;
  ctx.set({ ...allowOf(told.status, ctx.state as RequestState), ...told.headers });
  if ((ctx.state as RequestState).noStore === true) ctx.set('Cache-Control', 'no-store');
  ctx.type = 'application/json';
  ctx.body = JSON.stringify({ error: told.message, ...told.more });
}
