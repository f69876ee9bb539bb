/**
 * Routers of subjects, each mounted below the common path of its routes. @koa/router tries its routes in turn, so a
 * request should be tried only against routes of its subject with as many steps as its path.
 */
import Router, { type RouterContext } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { HttpError } from './errors.js';
import type { Route } from './route.js';

export type RouteHandler = (ctx: Context & { readonly params: Readonly<Record<string, string>> }) => Promise<void>;

export interface SubjectRouter {
  /** Path with which every route's path starts, without a trailing slash. */
  readonly prefix: string;
  readonly routes: readonly Route[];
  /** Routers by the number of steps in the paths of their routes. */
  readonly bySteps: readonly (Router | undefined)[];
}

/** @throws Error for two routes of one method and path, or one outside the prefix */
export type RouterMaker = (prefix: string, routes: readonly Route[]) => SubjectRouter;

/** Makes routers of routes. `allow` lists every method of the route's path, for the header `Allow`. */
export function routerMaker(handlerOf: (route: Route, allow: string) => RouteHandler): RouterMaker {
  return (prefix, routes) => {
    const bySteps: (Router | undefined)[] = [];
    const seen = new Set<string>();
    for (const route of routes) {
      const { method, path } = route;
      const name = `${method} ${path}`;
      if (seen.has(name)) throw new Error(`two routes answer ${name}`);
      if (path !== prefix && !path.startsWith(`${prefix}/`)) throw new Error(`${path} is not below ${prefix}`);
      seen.add(name);
      // A literal step wins over another route's parameter.
      const router = (bySteps[stepsOf(path)] ??= new Router({ prefix, sensitive: true, exclusive: 'specificity' }));
      router.register(path.slice(prefix.length) || '/', [method], handlerOf(route, allowedAt(routes, path)));
    }
    return { prefix, routes, bySteps };
  };
}

function allowedAt(routes: readonly Route[], path: string): string {
  const methods = routes
    .filter((route) => route.path === path)
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return methods.sort().join(', ');
}

/** Number of steps in a path. A trailing slash is no step: routes match with and without it. */
function stepsOf(path: string): number {
  let steps = 0;
  for (let at = 0; at !== -1 && at < path.length - 1; at = path.indexOf('/', at + 1)) steps++;
  return steps;
}

/** Finds the router of a path. The cost depends on the steps of the path, not on the number of routers. */
export function mounted(routers: readonly SubjectRouter[]): (path: string) => Middleware | undefined {
  const byPrefix = new Map<string, readonly (Middleware | undefined)[]>();
  let deepest = 0;
  for (const { prefix, bySteps } of routers) {
    if (byPrefix.has(prefix)) throw new Error(`two routers are mounted at ${prefix}`);
    byPrefix.set(
      prefix,
      Array.from(bySteps, (router) => router?.routes() as Middleware | undefined),
    );
    deepest = Math.max(deepest, prefix.split('/').length - 1);
  }
  return (path) => {
    let end = 0;
    for (let depth = 1; depth <= deepest && end !== -1; depth++) {
      end = path.indexOf('/', end + 1);
      const found = byPrefix.get(end === -1 ? path : path.slice(0, end));
      if (found !== undefined) return found[stepsOf(path)];
    }
    return undefined;
  };
}

/** Characters that are equivalent to their percent-encoding (RFC 3986 6.2.2.2). */
const UNRESERVED = /^[\w.~-]$/;

/** The path as routes spell it. @throws HttpError `not_found` for malformed percent-encoding */
export function normalizedPath(path: string): string {
  if (!path.includes('%')) return path;
  try {
    decodeURIComponent(path);
  } catch {
    throw new HttpError('not_found');
  }
  return path.replaceAll(/%[\da-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return UNRESERVED.test(character) ? character : encoded;
  });
}

/**
 * Pattern and methods of a path that no route answers with the request's method; `undefined`: no route has this path.
 */
export function otherMethods(ctx: Context): { readonly path: string; readonly allow: string } | undefined {
  const [first, ...others] = (ctx as Context & Partial<Pick<RouterContext, 'matched'>>).matched ?? [];
  if (first === undefined) return undefined;
  const methods = new Set([first, ...others].flatMap((layer) => layer.methods));
  return { path: String(first.path), allow: [...methods].sort().join(', ') };
}
