/** Refunds of a purchase (docs/support.md#support-refusals): those that were requested, and the request of another one. */
import type { ComponentChildren } from 'preact';
import type { RefundView } from '../../src/ops/refunds/refundView.js';
import { post } from '../service/call.js';
import { actOnMany } from '../service/many.js';
import { Action, type Field, type Values } from './action.js';
import type { Column } from './table.js';
import { count, Id, parkedPath, pounds, words } from './text.js';

const gifts = (number: number): string => (number === 1 ? '1 gift' : `${count(number)} gifts`);

const KEPT: Readonly<Record<string, string>> = { code_out: 'with a voucher', cancelled: 'cancelled before' };

/** Why gifts of the refund stay as they were, with how many. */
const keptText = (kept: RefundView['kept']): string =>
  Object.entries(kept)
    .filter(([, ids]) => ids.length > 0)
    .map(([why, ids]) => `${count(ids.length)} ${KEPT[why] ?? why}`)
    .join(', ');

export const REFUND_COLUMNS: readonly Column<RefundView>[] = [
  { name: 'Refund', cell: ({ id, status }) => (status === 'refused' ? <Id of={id} to={parkedPath} /> : id) },
  { name: 'Status', cell: ({ status }) => words(status) + (status === 'refused' ? ', parked' : '') },
  { name: 'Amount', cell: ({ amount }) => pounds(amount), number: true },
  { name: 'Gifts', cell: ({ gift_ids }) => count(gift_ids.length), number: true },
  { name: 'Gifts left as they were', cell: ({ kept }) => keptText(kept) || '–' },
  { name: 'Provider’s id', cell: ({ provider_ref }) => provider_ref ?? '–' },
  { name: 'Why refused', cell: ({ code }) => code ?? '–' },
];

const VOIDED: Field = {
  name: 'voided',
  label: 'The issuers have made issued voucher codes worthless',
  type: 'checkbox',
  optional: true,
};

interface RefundProps {
  readonly transaction: string;
  /** What of the payment was not given back yet, where that is known. */
  readonly left?: number | undefined;
  /** The gifts to refund, with the price of all; absent: all that are left. */
  readonly chosen?: { readonly ids: readonly string[]; readonly pence: number };
  readonly done: () => void;
}

export function Refund({ transaction, left, chosen, done }: RefundProps) {
  const run = async ({ reason = '', voided }: Values, key: string): Promise<ComponentChildren> => {
    const path = `ops/transactions/${encodeURIComponent(transaction)}/refund`;
    const body = { reason, voided: voided === 'true', ...(chosen === undefined ? {} : { gift_ids: chosen.ids }) };
    const { data } = await post<{ readonly data: RefundView }>(path, body, key);
    return <Outcome of={data} />;
  };
  if (chosen !== undefined)
    return (
      <Action
        label={chosen.ids.length === 1 ? 'Refund' : 'Refund them'}
        of={chosen.ids.join()}
        effect={`${gifts(chosen.ids.length)} can’t be used any more, and ${pounds(chosen.pence)} goes back to the buyer.${chosen.ids.length === 1 ? '' : ' If one of them can’t be refunded, none is.'}`}
        fields={[VOIDED]}
        run={run}
        done={done}
      />
    );
  return (
    <Action
      label="Refund all"
      effect="All gifts that are not redeemed and not refunded can’t be used any more, and their price goes back to the buyer."
      fields={[VOIDED]}
      preview={async ({ reason = '', voided }) => {
        const body = { action: 'refund', reason, voided: voided === 'true', items: [{ id: transaction }] };
        const [item] = await actOnMany(body, { key: undefined, progress: () => undefined });
        if (item?.outcome === 'refused') return `It will be refused: ${item.why ?? ''}`;
        return `It will be accepted.${left === undefined ? '' : ` At most ${pounds(left)} goes back to the buyer.`}`;
      }}
      run={run}
      done={done}
    />
  );
}

function Outcome({ of: { id, status, amount, gift_ids, kept, code } }: { readonly of: RefundView }) {
  const unchanged = keptText(kept);
  return (
    <>
      <p>
        {status === 'refunded'
          ? `${pounds(amount)} was refunded for ${gifts(gift_ids.length)}.`
          : status === 'nothing'
            ? 'Nothing was refunded: no gift could be cancelled.'
            : status === 'refused'
              ? `${gifts(gift_ids.length)} cancelled. The provider refuses to give ${pounds(amount)} back: ${code ?? 'unknown'}. `
              : `It is in progress for ${gifts(gift_ids.length)}.`}
        {status === 'refused' ? (
          <>
            The refund is parked: <Id of={id} to={parkedPath} />
          </>
        ) : null}
      </p>
      {unchanged === '' ? null : <p>Left as they were: {unchanged}.</p>}
    </>
  );
}
