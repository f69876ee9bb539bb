import type { Route } from '../../../src/api/pipeline/route.js';

/** A route that answers 200 to any caller. */
export const testRoute = (method: Route['method'], path: string): Route => ({
  method,
  path,
  operation: `${method} ${path}`,
  summary: path,
  tag: 'Test',
  caller: 'none',
  answers: [],
  errors: [],
  handle: async () => ({ status: 200, body: {} }),
});
