/** A request with one idempotency key, sent until it is answered. */
import { randomUUID, sleep } from '../../../src/lib/world.js';
import { type Answer, toldBy } from '../model/history.js';
import type { Client } from './client.js';

/** Virtual ms between two attempts. */
const PAUSE = { least: 200, most: 4_000 };
/** Attempts of a request. */
const TRIES = 5;

/** @returns the first answer that tells what became of it; `undefined`: none came */
export async function sentOnce(
  client: Client,
  user: string,
  method: 'POST',
  path: string,
  body: object,
): Promise<Answer | undefined> {
  const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID() };
  for (let tries = 0; tries < TRIES; tries++) {
    const answer = await client.exchange(user, { method, path, headers, body });
    const told = answer?.status === 401 ? undefined : toldBy({ answer });
    if (told !== undefined) return told;
    await sleep(client.chance.between(PAUSE.least, PAUSE.most));
  }
  return undefined;
}
