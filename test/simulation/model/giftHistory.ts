/** Holds the history of each gift against the reference model: linearizability gift by gift. */
import { feedActs } from './feedActs.js';
import type { Finding, Leeway } from './finding.js';
import {
  type GiftAct,
  type GiftObservation,
  type Story,
  embeddedActs,
  happeningActs,
  listedActs,
  requestAct,
  storyOf,
} from './giftActs.js';
import { type GiftState, boughtState } from './giftState.js';
import { type History, type Observation, describe, grouped, textField, toldBy } from './history.js';
import type { Installation } from './installation.js';
import { type Act, linearize } from './linearizable.js';
import { concernsGift } from './operations.js';
import { giftsOf, purchasesOf } from './purchases.js';
import type { GiftWorld } from './shown.js';
import { explain, smallest } from './smallest.js';

const isOfGift = (observation: Observation): observation is GiftObservation => concernsGift(observation.operation);

/** Findings about single gifts. */
export function checkGifts(history: History, installation: Installation, leeway: Leeway): Finding[] {
  const byGift = grouped(history.filter(isOfGift), ({ operation }) => operation.gift);
  const story = storyOf(history, installation, leeway);
  const replacements = replacementsOf(history);
  const findings: Finding[] = [];
  for (const purchase of purchasesOf(history, installation).values())
    for (const gift of giftsOf(purchase)) {
      const world = { gift, installation };
      const observations = byGift.get(gift.id) ?? [];
      byGift.delete(gift.id);
      const acts = [
        ...happeningActs(world, purchase, story),
        ...observations.flatMap((one) => requestAct(world, one, observations, story) ?? []),
        ...embeddedActs(world, story),
        ...listedActs(world, story),
        ...feedActs(world, story),
      ];
      findings.push(...checkGift(world, acts));
    }
  for (const [gift, observations] of byGift)
    if (!replacements.has(gift)) findings.push(...observations.flatMap((one) => ofNoGift(one, story)));
  return findings;
}

/** Gifts that support gave in place of others. */
function replacementsOf(history: History): Set<string> {
  return new Set(history.flatMap(({ answer }) => textField(answer?.body, 'data', 'replaced_by') ?? []));
}

/** A gift that no purchase bought is unknown. */
function ofNoGift(observation: GiftObservation, { numbers }: Story): Finding[] {
  const { operation } = observation;
  const answer = toldBy(observation);
  if (answer === undefined || operation.kind === 'lookUpKey') return [];
  if (answer.status === 404 && textField(answer.body, 'error') === 'gift not found') return [];
  const line = describe(observation, numbers.get(observation) ?? -1);
  return [{ rule: 'unknown gift', text: `No purchase bought this gift, so it is 404 gift not found.\n${line}` }];
}

function checkGift(world: GiftWorld, acts: readonly GiftAct[]): Finding[] {
  const initial = boughtState(world.gift, world.installation);
  const verdict = linearize(initial, acts);
  if (verdict.kind === 'ok') return [];
  const { id, product, buyer, receiver } = world.gift;
  const subject = `gift ${id} (${product.id}, bought by ${buyer} for ${JSON.stringify(receiver)})`;
  if (verdict.kind === 'undecided') {
    const text = explain(`${subject}, ${verdict.steps} steps`, { acts, stuck: verdict.stuck }, showState);
    return [{ rule: 'undecided', text }];
  }
  const small = smallest(initial, acts, cutAct) ?? { acts, stuck: verdict.stuck };
  return [{ rule: 'linearizable', text: explain(subject, small, showState) }];
}

const cutAct = (act: Act<GiftState>): Act<GiftState> | undefined => ('cut' in act ? (act as GiftAct).cut : act);

/** A state in one line, without what its keys keep. */
function showState({ kept: _kept, redemptions, ...rest }: GiftState): string {
  const made = redemptions.map(
    ({ id, redeemed, user, key }) => `${id} by ${user} key ${key}${redeemed ? '' : ', reversed'}`,
  );
  return `${JSON.stringify(rest)} redemptions: [${made.join('; ')}]`;
}
