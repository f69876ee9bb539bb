/** A purchase: what it is, its payment and refunds as a line of events, and its gifts. */
import { useState } from 'preact/hooks';
import type { EventView } from '../../src/ops/history/eventView.js';
import type { PurchaseRow } from '../../src/ops/purchases/purchaseRows.js';
import type { RefundView } from '../../src/ops/refunds/refundView.js';
import { Events } from '../parts/event.js';
import { Fields } from '../parts/fields.js';
import { GiftChoice } from '../parts/giftChoice.js';
import { Page, Shown } from '../parts/page.js';
import { Personal, ReasonForm, type Sight } from '../parts/personal.js';
import { REFUND_COLUMNS, Refund } from '../parts/refunds.js';
import { More, Table, usePaged } from '../parts/table.js';
import { WaitingWork } from '../parts/waitingWork.js';
import { get } from '../service/call.js';
import { type Loaded, useLoaded } from '../service/loaded.js';

interface Refunds {
  readonly data: readonly RefundView[];
}

export function Transaction({ id }: { readonly id: string }) {
  const [sight, setSight] = useState<Sight>({ reason: undefined });
  const [reason, setReason] = useState<string>();
  const [turn, setTurn] = useState(0);
  const events = usePaged<EventView>('ops/log', { stream: `transaction-${id}` }, { limit: 100, sight: sight.reason });
  const refunds = useLoaded(
    async (signal) => get<Refunds>(`ops/transactions/${encodeURIComponent(id)}/refunds`, { signal }),
    [id],
  );
  const [bought] = events.rows;
  const purchase = usePurchase(bought, events.rows.at(-1)?.id);
  const row = purchase.value;
  const reload = (): void => {
    events.first.reload();
    refunds.reload();
    setTurn(turn + 1);
  };
  return (
    <Page title={`Transaction ${id}`}>
      {bought === undefined ? null : <Shown of={purchase}>{(found) => <Summary of={found} bought={bought} />}</Shown>}
      <WaitingWork of={id} changed={reload} />
      <h2>What happened</h2>
      <Personal sight={sight} change={setSight} {...(reason === undefined ? {} : { known: reason })} />
      <Shown of={events.first}>
        {() => (
          <>
            <Events events={events.rows} />
            <More paging={events} />
          </>
        )}
      </Shown>
      {bought === undefined ? null : (
        <>
          <h2>Refunds</h2>
          <Shown of={refunds}>
            {({ data }) => (
              <Table
                caption="Refunds, the first one first"
                columns={REFUND_COLUMNS}
                rows={data}
                keyOf={({ id: refund }) => refund}
                none="No refund was requested."
              />
            )}
          </Shown>
          <div class="actions">
            <Refund transaction={id} left={row === undefined ? undefined : row.paid - row.refunded} done={reload} />
          </div>
          <h2>Gifts</h2>
          {reason === undefined ? (
            <ReasonForm label="Show its gifts" give={setReason} />
          ) : (
            <GiftChoice transaction={id} reason={reason} turn={turn} done={reload} />
          )}
        </>
      )}
    </Page>
  );
}

/**
 * The purchase as the list of purchases has it: there it is found by its buyer and time.
 * @param latest id of the latest event: another one changes what is shown
 */
function usePurchase(bought: EventView | undefined, latest: string | undefined): Loaded<PurchaseRow | undefined> {
  return useLoaded(
    async (signal) => {
      if (bought === undefined) return undefined;
      const { transaction_id, buyer_id } = bought.data as Pick<PurchaseRow, 'transaction_id' | 'buyer_id'>;
      const query = { buyer: buyer_id, from: bought.at, to: bought.at };
      const { data } = await get<{ readonly data: readonly PurchaseRow[] }>('ops/transactions', { query, signal });
      return data.find((one) => one.transaction_id === transaction_id);
    },
    [bought?.id, latest],
  );
}

interface SummaryProps {
  readonly of: PurchaseRow | undefined;
  readonly bought: EventView | undefined;
}

function Summary({ of, bought }: SummaryProps) {
  if (of === undefined) return <Fields of={bought?.data ?? {}} />;
  const { transaction_id: _, count: gifts, ...fields } = of;
  return <Fields of={{ ...fields, gifts }} />;
}
