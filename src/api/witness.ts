/** A witness over HTTP (c2sp.org/tlog-witness). It needs no token: the log's signature proves a request. */
import type { Context, Middleware } from 'koa';
import type { Witness } from '../ops/evidence/index.js';
import { readBytes } from './pipeline/body.js';
import { HttpError } from './pipeline/errors.js';
import { readOnly } from './pipeline/readOnly.js';
import type { RequestState } from './pipeline/requestState.js';

const ADD = '/add-checkpoint';
const LATEST = /^\/([\da-f]{64})\/checkpoint$/;
const TEXT = 'text/plain; charset=utf-8';

export function witnessApi(witness: Witness): Middleware {
  return async (ctx, next) => {
    if (ctx.path === ADD) return add(ctx, witness);
    const [, originHash] = LATEST.exec(ctx.path) ?? [];
    if (originHash === undefined) return next();
    readOnly(ctx, '/:hash/checkpoint');
    const log = witness.latest(originHash);
    if (log === undefined) throw new HttpError('not_found');
    ctx.set('Cache-Control', 'no-cache');
    ctx.set('Content-Type', TEXT);
    ctx.body = log.checkpoint;
    return undefined;
  };
}

async function add(ctx: Context, witness: Witness): Promise<void> {
  (ctx.state as RequestState).route = ADD;
  if (ctx.method !== 'POST') throw new HttpError('method_not_allowed', { headers: { Allow: 'POST' } });
  const answer = witness.add(await readBytes(ctx));
  ctx.status = answer.status;
  switch (answer.status) {
    case 200:
      ctx.set('Content-Type', TEXT);
      ctx.body = answer.cosignatures;
      return;
    case 409:
      ctx.set('Content-Type', 'text/x.tlog.size');
      ctx.body = `${answer.size}\n`;
      return;
    case 400:
    case 403:
    case 404:
    case 422:
      ctx.set('Content-Type', TEXT);
      ctx.body = `${answer.reason}\n`;
      return;
    default:
      answer satisfies never;
  }
}
