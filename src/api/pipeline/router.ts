/**
 * Routers of subjects, each mounted below the path that all of its routes begin with. @koa/router tries its routes one
 * after another, so a request must meet those of its subject only.
 */
import Router, { type RouterContext } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { HttpError } from './errors.js';
import type { Route } from './route.js';

/** Answers a request of one route; its path's parameters are decoded. */
export type RouteHandler = (ctx: Context & { readonly params: Readonly<Record<string, string>> }) => Promise<void>;

/** The router of a subject, with the routes that it was made from. */
export interface SubjectRouter {
  /** Every route's path is this one, or lies below it. Without a trailing slash. */
  readonly prefix: string;
  readonly routes: readonly Route[];
  readonly router: Router;
}

/** Makes the router of a subject. @throws Error for two routes of one method and path, and one outside the prefix */
export type RouterMaker = (prefix: string, routes: readonly Route[]) => SubjectRouter;

/** Makes routers whose routes are answered as `handlerOf` says. `allow`: every method of the route's path. */
export function routerMaker(handlerOf: (route: Route, allow: string) => RouteHandler): RouterMaker {
  return (prefix, routes) => {
    // A path whose literal step is a parameter of another route means the literal one.
    const router = new Router({ prefix, sensitive: true, exclusive: 'specificity' });
    const seen = new Set<string>();
    for (const route of routes) {
      const { method, path } = route;
      const name = `${method} ${path}`;
      if (seen.has(name)) throw new Error(`two routes answer ${name}`);
      if (path !== prefix && !path.startsWith(`${prefix}/`)) throw new Error(`${path} is not below ${prefix}`);
      seen.add(name);
      router.register(path.slice(prefix.length) || '/', [method], handlerOf(route, allowedAt(routes, path)));
    }
    return { prefix, routes, router };
  };
}

/** Every method that these routes take at a path pattern, as `Allow` says them. */
function allowedAt(routes: readonly Route[], path: string): string {
  const methods = routes
    .filter((route) => route.path === path)
    .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return methods.sort().join(', ');
}

/** Finds the router of a path: the cost depends on the depth of the prefixes, not on the number of routers. */
export function mounted(routers: readonly SubjectRouter[]): (path: string) => Middleware | undefined {
  const byPrefix = new Map<string, Middleware>();
  let deepest = 0;
  for (const { prefix, router } of routers) {
    if (byPrefix.has(prefix)) throw new Error(`two routers are mounted at ${prefix}`);
    byPrefix.set(prefix, router.routes() as Middleware);
    deepest = Math.max(deepest, prefix.split('/').length - 1);
  }
  return (path) => {
    let end = 0;
    for (let depth = 1; depth <= deepest && end !== -1; depth++) {
      end = path.indexOf('/', end + 1);
      const found = byPrefix.get(end === -1 ? path : path.slice(0, end));
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

/** Characters that mean the same whether they are percent-encoded or not (RFC 3986 6.2.2.2). */
const UNRESERVED = /^[\w.~-]$/;

/**
 * A path in the spelling in which routes are written. @throws HttpError `not_found` where its percent-encoding is
 * malformed
 */
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

/** A path whose routes take other methods than the one that was asked with; `undefined`: no route has this path. */
export function otherMethods(ctx: Context): { readonly path: string; readonly allow: string } | undefined {
  const [first, ...others] = (ctx as unknown as RouterContext).matched ?? [];
  if (first === undefined) return undefined;
  const methods = new Set([first, ...others].flatMap((layer) => layer.methods));
  return { path: String(first.path), allow: [...methods].sort().join(', ') };
}
