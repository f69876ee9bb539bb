/**
 * People of support who decide on parked work (docs/support.md#parked-work-by-entity): they retry or discard one piece,
 * by its id or by what it belongs to, or a whole group.
 */
import { sleep } from '../../../src/lib/world.js';
import { type Answer, listField, textField } from '../model/history.js';
import type { Member } from '../service/member.js';
import { perform } from '../world/simulatedWorld.js';
import type { Simulation } from '../world/simulation.js';
import { openClient } from './client.js';
import { SECOND_SUPPORT } from './leavers.js';
import { sentOnce } from './sentOnce.js';

export interface ParkedDesk {
  /** Lets them act until the virtual time `untilMs`. */
  start(untilMs: number): void;
  /** Repeats what was not answered, as the documents advise. To be called once nothing fails any more. */
  finish(): Promise<void>;
  /** Discards all refunds and charges that wait: a person has seen to their money. */
  settleMoney(): Promise<void>;
  /** The service was restored from a backup, which may hold a discard without what follows on it. */
  forgetSince(): void;
}

interface Decision {
  readonly path: string;
  readonly body: object;
}

const SUPPORT = ['sue', SECOND_SUPPORT];
const PAUSE = { least: 200, most: 3_000 };
/** Shares of decisions: on a group; by the id of a transaction in place of the work's own; those that discard. */
const BY_GROUP = 0.25;
const BY_TRANSACTION = 0.3;
const DISCARDED = 0.45;
/** Share of the discards of charges in a group whose call dies between a piece's discard and its decline. */
const CUT_OFF = 0.7;
const DECLINE = / append transaction-\S+ PaymentDeclined$/;
const WITHIN_MS = 300_000;

/** @param times how much faster they act than is usual */
export function openParkedDesk(simulation: Simulation, members: readonly Member[], times: number): ParkedDesk {
  const client = openClient(simulation, { name: 'parked desk', members });
  const { chance } = client;
  /** Those without an answer: they may have died halfway. */
  const open = new Set<Decision>();
  let reasons = 0;
  let restored = false;

  async function listed(path: string): Promise<readonly unknown[]> {
    const request = { method: 'GET', path, headers: {}, body: undefined } as const;
    const answer = await client.exchange(chance.pick(SUPPORT), request);
    return answer?.status === 200 ? listField(answer.body, 'data') : [];
  }

  async function decide(decision: Decision): Promise<Answer | undefined> {
    open.add(decision);
    const answer = await sentOnce(client, chance.pick(SUPPORT), 'POST', decision.path, decision.body);
    if (answer !== undefined) open.delete(decision);
    return answer;
  }

  async function act(): Promise<void> {
    const byGroup = chance.happens(BY_GROUP);
    const pieces = await listed(byGroup ? '/ops/parked/groups' : '/ops/parked');
    if (pieces.length === 0) return;
    const piece = chance.pick(pieces);
    const named = textField(piece, !byGroup && chance.happens(BY_TRANSACTION) ? 'transaction_id' : 'id') ?? '';
    const what = chance.happens(DISCARDED) ? 'discard' : 'retry';
    const reason = `a decision on parked work ${++reasons}`;
    const process = textField(piece, 'process');
    if (byGroup && what === 'discard' && process === 'purchase' && chance.happens(CUT_OFF))
      simulation.faults.aim('events refuses', DECLINE);
    const answer = await decide({ path: `/ops/parked/${byGroup ? 'groups/' : ''}${named}/${what}`, body: { reason } });
    const of = byGroup ? 'group' : process;
    simulation.marks.sometimes(`${what} of parked work (${of}): ${answer?.status ?? 'no answer'}`);
  }

  return {
    start(untilMs) {
      client.process.start('acting', async () => {
        while (simulation.ms() < untilMs) {
          await sleep(chance.between(PAUSE.least, PAUSE.most) / times);
          await act();
        }
      });
    },
    async settleMoney() {
      for (const process of ['refund', 'purchase'])
        for (const piece of await listed(`/ops/parked?process=${process}`))
          await decide({ path: `/ops/parked/${textField(piece, 'id')}/discard`, body: { reason: 'settled by hand' } });
    },
    forgetSince() {
      restored = true;
    },
    finish: async () =>
      perform(
        simulation,
        client.process,
        'finish decisions',
        async () => {
          if (restored)
            for (const piece of await listed('/ops/parked?state=discarded'))
              open.add({ path: `/ops/parked/${textField(piece, 'id')}/discard`, body: { reason: 'once more' } });
          for (const decision of open) while ((await decide(decision)) === undefined);
        },
        WITHIN_MS,
      ),
  };
}
