import Koa, { type Context, type Middleware } from 'koa';
import type { Logger } from 'pino';
import { ticks } from '../../lib/world.js';
import { inSpan, tracingOn } from '../../tracing/spans.js';
import { type Cors, corsFor } from './cors.js';
import { brokenByCaller, CALLER_LEFT, CallerLeftError } from './callerLeft.js';
import { answerOf, HttpError } from './errors.js';
import { limitHeaders } from './limitHeaders.js';
import { allowOf } from './respond.js';
import { requestIdOf, type RequestState } from './requestState.js';
import { mounted, normalizedPath, otherMethods, type SubjectRouter } from './router.js';
import { setCommonHeaders } from './send.js';

/**
 * Observer called with every answer, which must be quick and not throw. `route`: the path pattern; `undefined`: no
 * match.
 */
export type OnAnswer = (method: string, route: string | undefined, status: number, milliseconds: number) => void;

/** A request with a client's token, of that client or of a user, that a route refused or failed at. */
export interface Failure {
  readonly client: string;
  readonly method: string;
  /** Pattern of the route's path. */
  readonly route: string;
  readonly status: number;
  readonly code: string | undefined;
  readonly requestId: string;
}

interface ApplicationOptions {
  /** Routers of the API, whose routes set the common headers themselves. */
  readonly routers?: readonly SubjectRouter[];
  readonly onAnswer?: OnAnswer | undefined;
  /** Called after answers of 4xx and 5xx to known callers; it must be quick and not throw. */
  readonly onFailure?: ((failure: Failure) => void) | undefined;
  /** Origins whose pages may call the API. Default: none. */
  readonly corsOrigins?: readonly string[];
}

/** Koa application of routers and middlewares; requests that none of them answers get 404 or 405. */
export function application(
  logger: Logger,
  middlewares: readonly Middleware[],
  { routers = [], onAnswer, onFailure, corsOrigins = [] }: ApplicationOptions = {},
): Koa {
  // The first use of `Response`, in Koa for a streamed body, makes Node load its HTTP client. This happens here and not
  // during a request.
  void globalThis.Response;
  const app = new Koa();
  // @koa/router reads the host of each request, which Koa parses again every time. No route depends on the host name.
  Object.defineProperty(app.context, 'host', { value: '' });
  const cors = corsFor(corsOrigins);
  if (tracingOn()) app.use(requestSpan);
  app.use(outermost(logger, mounted(routers), { onAnswer, onFailure }, cors));
  app.use((ctx, next) => {
    setCommonHeaders(ctx);
    return next();
  });
  for (const middleware of middlewares) app.use(middleware);
  app.use(unmatched);
  // By default Koa prints errors of started responses to the console.
  const logged = new WeakSet<object>();
  app.on('error', (error: object, ctx: Context) => {
    // Koa and the response's stream both report the same error.
    if (logged.has(error)) return;
    logged.add(error);
    const { requestId: req } = ctx.state as RequestState;
    // Any caller could cause these errors, so they are no warning.
    if (brokenByCaller(error)) logger.info({ req }, 'a caller left before all of the response was sent');
    else logger.warn({ req, err: error }, 'a response could not be sent whole');
  });
  return app;
}

/** Refuses a request that no route matched: for a known path 405 with `Allow`, otherwise 404. */
const unmatched: Middleware = (ctx) => {
  const known = otherMethods(ctx);
  if (known === undefined) throw new HttpError('not_found');
  (ctx.state as RequestState).route = known.path;
  throw new HttpError('method_not_allowed', { headers: { Allow: known.allow } });
};

type Mounted = ReturnType<typeof mounted>;

function outermost(
  logger: Logger,
  routerAt: Mounted,
  { onAnswer, onFailure }: Pick<ApplicationOptions, 'onAnswer' | 'onFailure'>,
  cors: Cors | undefined,
): Middleware {
  return async (ctx, next) => {
    const started = ticks();
    // Request and response are taken from Node, not from Koa: every request passes here, and Koa's properties are
    // nested getters.
    const { req, res } = ctx;
    // Before any other header is set: others may vary by more.
    if (cors !== undefined) ctx.set(cors.headersFor(req.headers.origin));
    const state = ctx.state as RequestState;
    state.requestId = requestIdOf(req);
    try {
      const router = routerAt(pathOf(ctx));
      await (router === undefined ? next() : router(ctx, next));
    } catch (error) {
      const methods =
        error instanceof HttpError && error.code === 'method_not_allowed' ? error.headers['Allow'] : undefined;
      if (methods === undefined || cors?.answersPreflight(ctx, methods) !== true) answerError(ctx, error, logger);
    }
    const took = ticks() - started;
    onAnswer?.(req.method as string, state.route, res.statusCode, took);
    if (res.statusCode >= 400 && onFailure !== undefined) noteFailure(ctx, onFailure);
    logger.info(
      {
        req: state.requestId,
        method: req.method,
        // An unknown path may hold anything: an id with a typing error, a phone number.
        route: state.route ?? 'unknown',
        status: res.statusCode,
        ms: Math.round(took * 10) / 10,
        // Pino leaves out undefined fields.
        user: state.principal?.kind === 'user' ? state.principal.user.id : undefined,
        client: clientOf(state),
      },
      'request',
    );
  };
}

/**
 * The path for the routers.
 * @throws HttpError `not_found` for an unreadable path, such as an absolute target without a proper host (RFC 9112
 * 3.2.2)
 */
function pathOf(ctx: Context): string {
  // Koa's type omits null.
  let path: string | null = null;
  try {
    ({ path } = ctx);
  } catch {
    // Treated as a request without a path.
  }
  if (path === null) throw new HttpError('not_found');
  const normalized = normalizedPath(path);
  if (normalized !== path) ctx['newRouterPath'] = normalized;
  return normalized;
}

/** Notes nothing of support, whose calls leave records of their own, and of a caller who left. */
function noteFailure({ req, res, state }: Context, onFailure: (failure: Failure) => void): void {
  const { route, errorCode: code, requestId } = state as RequestState;
  const client = clientOf(state as RequestState);
  const { statusCode: status } = res;
  if (client === undefined || route === undefined || status === CALLER_LEFT || route.startsWith('/ops/')) return;
  onFailure({ client, method: req.method as string, route, status, code, requestId });
}

function clientOf({ principal }: RequestState): string | undefined {
  return principal === undefined || principal.kind === 'anonymous' ? undefined : principal.clientId;
}

function answerError(ctx: Context, error: unknown, logger: Logger): void {
  if (error instanceof CallerLeftError) {
    ctx.respond = false;
    ctx.status = CALLER_LEFT;
    // A caller that has only ended its side must not wait for an answer that never comes.
    ctx.res.destroy();
    return;
  }
  const state = ctx.state as RequestState;
  const answer = answerOf(error);
  const { status, code, headers, message, more, unforeseen } = answer;
  state.errorCode = code;
  if (unforeseen) {
    const [level, text] =
      status === 500 ? (['error', 'request failed'] as const) : (['warn', 'an engine was unavailable'] as const);
    logger[level]({ req: state.requestId, err: error }, text);
  }
  setCommonHeaders(ctx);
  ctx.status = status;
  const limits = limitHeaders(state);
  for (let at = 0; at < limits.length; at += 2) ctx.set(limits[at] as string, limits[at + 1] as string);
  ctx.set({ ...allowOf(status, state), ...headers });
  if (state.noStore === true) ctx.set('Cache-Control', 'no-store');
  const { errorPage } = state;
  const page = errorPage !== undefined && ctx.accepts('json', 'html') === 'html' ? errorPage(answer) : undefined;
  if (page !== undefined) ctx.set(page.headers);
  else ctx.type = 'application/json';
  ctx.body = page?.body ?? JSON.stringify({ error: message, ...more });
}

/**
 * Trace span of a request, which continues the caller's trace and is named by the route's pattern. It must be the
 * outermost middleware.
 */
const requestSpan: Middleware = (ctx, next) =>
  inSpan(
    () => ({
      name: ctx.method,
      kind: 'server',
      headers: ctx.headers,
      attributes: { 'http.request.method': ctx.method },
    }),
    async (span) => {
      await next();
      const { requestId, route = 'unknown' } = ctx.state as RequestState;
      span.rename(`${ctx.method} ${route}`);
      span.set({ 'http.route': route, 'http.response.status_code': ctx.status, 'gift.request_id': requestId });
      if (ctx.status >= 500) span.fail(String(ctx.status));
    },
  );
