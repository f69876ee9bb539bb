/**
 * `/healthz`: the process lives. `/readyz`: engines answer and read models have caught up. Neither needs a token
 * (docs/settings.md#while-it-runs).
 */
import type { Middleware } from 'koa';
import { ERRORS } from '../domain/errors.js';
import { CODE_HEADER, retryAfterOf } from './pipeline/errors.js';
import { readOnly } from './pipeline/readOnly.js';

export interface PartHealth {
  readonly ready: boolean;
  /** Description of the part's state, which never holds an address. */
  readonly detail: string;
}

export type Readiness = () => Promise<{
  readonly parts: Readonly<Record<string, PartHealth>>;
  readonly simulated: readonly string[];
}>;

interface HealthOptions {
  /** `status`: `/readyz` names no part and no engine, for a port that strangers reach. */
  readonly shown?: 'parts' | 'status';
  /** Id of the log that the process works on, by which `gift diagnose` knows its own service. */
  readonly log?: string;
}

export function health(readiness: Readiness, { shown = 'parts', log }: HealthOptions = {}): Middleware {
  return async (ctx, next) => {
    const path = ctx.path.replace(/(?<=.)\/$/, '');
    if (path !== '/healthz' && path !== '/readyz') return next();
    readOnly(ctx, path);
    ctx.set('Cache-Control', 'no-store');
    ctx.type = 'application/json';
    if (path === '/healthz') {
      ctx.body = JSON.stringify({ status: 'alive' });
      return undefined;
    }
    const { parts, simulated } = await readiness();
    const ready = Object.values(parts).every((part) => part.ready);
    const [status, error] = ERRORS.unavailable;
    ctx.status = ready ? 200 : status;
    if (!ready) ctx.set({ ...retryAfterOf('unavailable'), [CODE_HEADER]: 'unavailable' });
    ctx.body = JSON.stringify({
      ...(ready ? { status: 'ready' } : { status: 'not ready', error }),
      ...(shown === 'parts' ? { parts, simulated, log } : {}),
    });
    return undefined;
  };
}
