/**
 * Finds the route of a request. find-my-way walks a tree of path segments, so that a request costs the same however
 * many routes there are; with @koa/router, which tries them one after another and composes anew for each request, this
 * took longer than all else before the handler.
 */
import findMyWay from 'find-my-way';
import type { Context } from 'koa';
import type { Route } from './route.js';

/** Answers a request of one route. `params`: decoded. */
export type RouteHandler = (ctx: Context, params: Readonly<Record<string, string>>) => Promise<void>;

/** A route that was found. */
export interface FoundRoute {
  readonly answer: RouteHandler;
  readonly params: Readonly<Record<string, string>>;
}

/** The routes, to be found by method and path. */
export interface Router {
  /** HEAD finds what GET finds; a trailing slash makes no difference. */
  find(method: string, path: string): FoundRoute | undefined;
  /** A path's route with another method, and every method it takes; `undefined`: there is no such path. */
  others(path: string): { readonly path: string; readonly methods: readonly string[] } | undefined;
}

/**
 * No identifier is longer than a request's head may be (see Node's `maxHeaderSize`), so none is refused for its length
 * here.
 */
const LONGEST_PARAM = 16_384;
/** Queries are read by who needs them. */
const NO_QUERY = Object.freeze({});

/**
 * A router for these routes; `handlerOf` makes what answers each. @throws Error when two routes have the same method
 * and path.
 */
export function createRouter(routes: readonly Route[], handlerOf: (route: Route) => RouteHandler): Router {
  const tree = findMyWay({
    ignoreTrailingSlash: true,
    maxParamLength: LONGEST_PARAM,
    querystringParser: () => NO_QUERY as Record<string, string>,
  });
  const methods = new Set<'GET' | 'HEAD' | 'POST' | 'PATCH'>();
  for (const route of routes) {
    const answer = handlerOf(route);
    for (const method of route.method === 'GET' ? (['GET', 'HEAD'] as const) : [route.method]) {
      methods.add(method);
      tree.on(method, route.path, unused, { path: route.path, answer });
    }
  }
  const find = (method: string, path: string): ReturnType<typeof tree.find> => tree.find(method as 'GET', path);
  return {
    find(method, path) {
      const found = find(method, path);
      if (found === null) return undefined;
      return {
        answer: (found.store as { answer: RouteHandler }).answer,
        params: found.params as Record<string, string>,
      };
    },
    others(path) {
      const known = [...methods].flatMap((method) => {
        const found = find(method, path);
        return found === null ? [] : [{ method, path: (found.store as { path: string }).path }];
      });
      const [first] = known;
      return first === undefined ? undefined : { path: first.path, methods: known.map(({ method }) => method).sort() };
    },
  };
}

/** Every method that these routes take at a path pattern, as `Allow` says them. */
export function allowedAt(routes: readonly Route[], path: string): string {
  const methods = routes
    .filter((route) => route.path === path)
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return methods.sort().join(', ');
}

/** Routes are looked up, not called by the tree. */
const unused = (): void => undefined;
