/**
 * Operators of a run: while clients act and things fail, they verify, rebuild and repair read models, abort rebuilds and
 * go back (docs/support.md).
 */
import { PROJECTIONS } from '../../../src/projections/index.js';
import { sleep } from '../../../src/lib/world.js';
import { type Answer, field, listField, textField } from '../model/history.js';
import type { Finding } from '../model/finding.js';
import type { Member } from '../service/member.js';
import type { Simulation } from '../world/simulation.js';
import { openClient } from './client.js';
import { LEAVERS } from './leavers.js';

export interface Operators {
  /** Lets them act until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /**
   * What an operator saw that must not be.
   * @param mayDiffer whether a checkpoint was set to beyond the log, or rows of the key store were lost. Until the
   * read model is built anew, it lacks what is appended, or has texts that the log has lost; a verification says so.
   */
  findings({ mayDiffer }: { readonly mayDiffer: boolean }): readonly Finding[];
}

type Work = 'verification' | 'rebuild' | 'repair' | 'abort' | 'rollback';

/** How often each is chosen, by the number of times that it is named. */
const WORK: readonly Work[] = [
  ...(['verification', 'verification', 'verification', 'verification'] as const),
  ...(['rebuild', 'rebuild', 'rebuild', 'repair', 'abort', 'rollback'] as const),
];
const SUPPORT = 'sue';
/** Virtual ms between two pieces of work; shorter in the runs that are about them. */
const PAUSE = { least: 2_000, most: 60_000 };
const BUSY = { share: 0.15, pause: { least: 200, most: 4_000 } };
const LOOK_MS = 2_000;
const MOST_LOOKS = 30;
const BODY: Readonly<Record<Work, object>> = {
  verification: { reason: 'by chance' },
  rebuild: { reason: 'by chance' },
  repair: { reason: 'by chance', found: true },
  abort: { reason: 'by chance' },
  rollback: { reason: 'by chance' },
};
/** 404: no such task or rebuild; 409: not now; 429 and 503: not at all for now. */
const USUAL: ReadonlySet<number> = new Set([200, 202, 404, 409, 422, 429, 503]);

export function openOperators(simulation: Simulation, members: readonly Member[]): Operators {
  const client = openClient(simulation, { name: 'operator', members });
  const pause = client.chance.happens(BUSY.share) ? BUSY.pause : PAUSE;
  const findings: Finding[] = [];
  const differing: Finding[] = [];
  const found = (what: string, answer: Answer, into = findings): void =>
    void into.push({ rule: 'operators', text: `${what}: ${answer.status} ${JSON.stringify(answer.body)}` });

  async function ask(method: 'GET' | 'POST', path: string, body?: object): Promise<Answer | undefined> {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const answer = await client.exchange(SUPPORT, { method, path, headers, body });
    if (answer !== undefined && answer.status !== 401 && !USUAL.has(answer.status)) found(`${method} ${path}`, answer);
    return answer;
  }

  async function verified(path: string): Promise<void> {
    for (let look = 0; look < MOST_LOOKS; look++) {
      await sleep(LOOK_MS);
      const answer = await ask('GET', path);
      if (answer?.status !== 200 || field(answer.body, 'data', 'state') === 'running') continue;
      simulation.marks.sometimes(`a verification ends: ${String(field(answer.body, 'data', 'state'))}`);
      const ids = listField(answer.body, 'data', 'result', 'found').map((one) => textField(one, 'id') ?? '');
      // A person may be in the middle of an erasure (docs/personal-data.md#erasure).
      if (ids.some((id) => !LEAVERS.some((person) => id === `user-${person.id}`))) found(path, answer, differing);
      return;
    }
  }

  async function act(): Promise<void> {
    const { name } = client.chance.pick(PROJECTIONS);
    const work = client.chance.pick(WORK);
    const path = `/ops/projections/${name}/${work}`;
    const answer = await ask('POST', path, BODY[work]);
    if (answer !== undefined && answer.status < 300) simulation.marks.sometimes(`an operator's ${work} is taken on`);
    if (work === 'verification') await verified(path);
  }

  return {
    findings: ({ mayDiffer }) => [...findings, ...(mayDiffer ? [] : differing)],
    start(untilMs) {
      client.process.start('acting', async () => {
        while (simulation.ms() < untilMs) {
          await sleep(client.chance.between(pause.least, pause.most));
          await act();
        }
      });
    },
  };
}
