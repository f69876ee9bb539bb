/** A gift: what it is, as of any moment, and its life as a line of events. */
import { useState } from 'preact/hooks';
import type { GiftBlocked, GiftUnblocked } from '../../src/domain/gift/events.js';
import type { EventView } from '../../src/ops/history/eventView.js';
import { may } from '../parts/action.js';
import { Events } from '../parts/event.js';
import { Fields } from '../parts/fields.js';
import { GiftActions } from '../parts/giftActions.js';
import { GiftProof } from '../parts/giftProof.js';
import { Page, Problem, Shown } from '../parts/page.js';
import { Refund } from '../parts/refunds.js';
import { Personal, type Sight, sightQuery } from '../parts/personal.js';
import { giftPath, Id, Time, transactionPath, words } from '../parts/text.js';
import { WaitingWork } from '../parts/waitingWork.js';
import { get } from '../service/call.js';
import { pauseSince, useLoaded } from '../service/loaded.js';

interface History {
  readonly data: readonly EventView[];
  readonly transaction_id: string;
  readonly gift_ids: readonly string[];
}

/** @param id the gift's id or shortcode */
export function Gift({ id }: { readonly id: string }) {
  const [sight, setSight] = useState<Sight>({ reason: undefined });
  const path = `ops/gifts/${encodeURIComponent(id)}`;
  const history = useLoaded(
    async (signal) => get<History>(`${path}/history`, { query: sightQuery(sight), signal }),
    [id],
    { sight: sight.reason, everyMs: (loaded) => pauseUntilOutcome(loaded?.data.at(-1)) },
  );
  return (
    <Page title={`Gift ${id}`}>
      <Shown of={history}>
        {({ data, transaction_id, gift_ids }) => (
          <>
            <p>
              Bought by transaction <Id of={transaction_id} to={transactionPath} />
            </p>
            <Blocked events={data} />
            <Replacement events={data} />
            {data.some(({ type }) => type === 'WorkParked') ? (
              <WaitingWork of={gift_ids[0] ?? id} changed={history.reload} />
            ) : null}
            <Personal sight={sight} change={setSight} />
            <h2>What happened</h2>
            <Events events={data} />
            {may(['support']) ? <h2>What can be done</h2> : null}
            <GiftActions ids={gift_ids.slice(0, 1)} done={history.reload} />
            <div class="actions">
              <Refund transaction={transaction_id} chosen={priceOf(data, gift_ids[0] ?? id)} done={history.reload} />
            </div>
            <h2>As of a moment</h2>
            <AsOf path={path} events={data} sight={sight} />
            <h2>Proof</h2>
            <GiftProof path={path} id={gift_ids[0] ?? id} />
          </>
        )}
      </Shown>
    </Page>
  );
}

/** Events that the service answers by itself, often within a second. */
const ANSWERED: ReadonlySet<string> = new Set([
  'GiftIssued',
  'GiftReassigned',
  'NotificationRequested',
  'NotificationStarted',
  'WorkRetried',
]);

const pauseUntilOutcome = (last: EventView | undefined): number | undefined =>
  last !== undefined && ANSWERED.has(last.type) ? pauseSince(last.at) : undefined;

/** The gift, and what was paid for it. */
function priceOf(
  events: readonly EventView[],
  id: string,
): { readonly ids: readonly string[]; readonly pence: number } {
  const issued = events.find(({ type, stream }) => type === 'GiftIssued' && stream === `gift-${id}`)?.data as
    { readonly value: number } | undefined;
  return { ids: [id], pence: issued?.value ?? 0 };
}

/** Support, each ticket and each dispute block by themselves: the end of one block leaves the others. */
function Blocked({ events }: { readonly events: readonly EventView[] }) {
  const causes = new Set<unknown>();
  for (const { type, data } of events) {
    if (type === 'GiftBlocked') causes.add((data as Partial<GiftBlocked['data']>).cause);
    if (type === 'GiftUnblocked') causes.delete((data as Partial<GiftUnblocked['data']>).cause);
  }
  return causes.size > 0 ? <Problem>The gift is blocked: it can’t be redeemed.</Problem> : null;
}

function Replacement({ events }: { readonly events: readonly EventView[] }) {
  const replaced = events.find(({ type }) => type === 'GiftReplaced')?.data as
    { readonly replaced_by?: { readonly gift_id: string } } | undefined;
  if (replaced?.replaced_by === undefined) return null;
  return (
    <p>
      Replaced by gift <Id of={replaced.replaced_by.gift_id} to={giftPath} />
    </p>
  );
}

/** Fields that only an app needs. */
function withoutPresentation(gift: AsOfAnswer['data']): object {
  const { theme_info: _t, launch_url: _l, status: _s, ...rest } = gift;
  return rest;
}

interface AsOfAnswer {
  readonly data: Readonly<Record<string, unknown>>;
}

interface AsOfProps {
  readonly path: string;
  readonly events: readonly EventView[];
  readonly sight: Sight;
}

/** The gift as the API would have shown it after each event of its own. */
function AsOf({ path, events, sight }: AsOfProps) {
  const own = events.filter(({ stream }) => stream.startsWith('gift-'));
  const [chosen, setChosen] = useState<number>();
  const at = Math.min(chosen ?? own.length - 1, own.length - 1);
  const event = own[at];
  const shown = useLoaded(
    async (signal) =>
      event === undefined
        ? undefined
        : get<AsOfAnswer>(`${path}/as-of`, { query: { time: event.at, ...sightQuery(sight) }, signal }),
    [path, event?.id],
    { sight: sight.reason },
  );
  if (event === undefined) return <p>It is not issued yet.</p>;
  return (
    <>
      <label>
        After “{words(event.type).toLowerCase()}”, <Time at={event.at} />
        <input
          type="range"
          min={0}
          max={own.length - 1}
          value={at}
          disabled={own.length === 1}
          aria-valuetext={`after ${words(event.type).toLowerCase()}`}
          onInput={({ currentTarget }) => setChosen(Number(currentTarget.value))}
        />
      </label>
      <Shown of={shown}>{(answer) => <Fields of={withoutPresentation(answer?.data ?? {})} />}</Shown>
    </>
  );
}
