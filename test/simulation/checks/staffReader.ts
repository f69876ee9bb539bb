/** Reads what staff are shown, once nothing fails any more. */
import { sleep } from '../../../src/lib/world.js';
import { type Client, openClient } from '../clients/client.js';
import { type Answer, listField, textField } from '../model/history.js';
import type { Cluster } from '../service/cluster.js';
import type { Member } from '../service/member.js';

export const AUDITOR = 'aud';
const RETRY_MS = 1_000;

export interface StaffReader {
  readonly client: Client;
  /** Repeats the call until it is answered. */
  read(user: string, path: string): Promise<Answer>;
  /** The data of all pages of a list, by `after`. @throws Error for a refusal */
  readPages(user: string, path: string): Promise<readonly unknown[]>;
}

/** @param members those that serve the API */
export function openStaffReader({ simulation }: Cluster, members: readonly Member[], name: string): StaffReader {
  const client = openClient(simulation, { name, members });
  async function read(user: string, path: string): Promise<Answer> {
    for (;;) {
      const answer = await client.exchange(user, { method: 'GET', path, headers: {}, body: undefined });
      if (answer !== undefined && answer.status < 500 && answer.status !== 401 && answer.status !== 429) return answer;
      await sleep(RETRY_MS);
    }
  }
  return {
    client,
    read,
    async readPages(user, path) {
      const all: unknown[] = [];
      for (let after: string | undefined; ;) {
        const from = after === undefined ? '' : `&after=${encodeURIComponent(after)}`;
        const { status, body } = await read(user, path + from);
        if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
        all.push(...listField(body, 'data'));
        after = textField(body, 'next');
        if (after === undefined) return all;
      }
    },
  };
}
