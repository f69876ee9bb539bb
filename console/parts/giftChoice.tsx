/** The gifts of a purchase, and what can be done to those that are chosen. */
import { useEffect, useId, useState } from 'preact/hooks';
import { useAttempt } from '../service/attempt.js';
import { allGifts, type FoundGift } from '../service/finding.js';
import { ChooseByReceiver } from './chooseByReceiver.js';
import { GIFT_COLUMNS } from './foundRows.js';
import { GiftActions } from './giftActions.js';
import { Problem } from './page.js';
import { ReassignMany } from './reassignMany.js';
import { Refund } from './refunds.js';
import { type Column, PagedTable, usePaged } from './table.js';
import { count, words } from './text.js';

const STATUSES = ['pending', 'sent', 'redeemed', 'cancelled', 'blocked'];

const hasStatus = ({ gift_status, blocked }: FoundGift, status: string): boolean =>
  status === '' || (status === 'blocked' ? blocked : gift_status === status);

/** Rows of a page. */
const ROWS = 100;

/** Prices of the chosen gifts by their ids. */
type Chosen = ReadonlyMap<string, number>;

const NONE: Chosen = new Map();

interface GiftChoiceProps {
  readonly transaction: string;
  /** Recorded with each list of gifts. */
  readonly reason: string;
  /** Another one says that gifts may have changed. */
  readonly turn: number;
  readonly done: () => void;
}

export function GiftChoice({ transaction, reason, turn, done }: GiftChoiceProps) {
  const query = { transaction, reason };
  const paging = usePaged<FoundGift>('ops/gifts', query, { limit: ROWS });
  const { reload } = paging.first;
  useEffect(() => {
    if (turn > 0) reload();
  }, [turn]);
  const [status, setStatus] = useState('');
  const [chosen, setChosen] = useState(NONE);
  const { busy, wrong, attempt } = useAttempt();
  const id = useId();
  const rows = paging.rows.filter((gift) => hasStatus(gift, status));
  const choose = (gifts: readonly FoundGift[]): void =>
    setChosen(new Map(gifts.map(({ gift_id, value }) => [gift_id, value])));
  const chooseAll = async (): Promise<void> =>
    attempt(async () => choose((await allGifts(query)).filter((gift) => hasStatus(gift, status))));
  const toggle = ({ gift_id, value }: FoundGift): void => {
    const after = new Map(chosen);
    if (!after.delete(gift_id)) after.set(gift_id, value);
    setChosen(after);
  };
  const box: Column<FoundGift> = {
    name: 'Chosen',
    cell: (gift) => (
      <input
        type="checkbox"
        aria-label={`Gift ${gift.gift_id}`}
        checked={chosen.has(gift.gift_id)}
        onChange={() => toggle(gift)}
      />
    ),
  };
  return (
    <>
      <div class="choice">
        <label for={id}>Status</label>
        <select
          id={id}
          value={status}
          // All of a status are being chosen: it must stay the one that is shown.
          disabled={busy}
          onChange={({ currentTarget }) => {
            // What is not shown any more must not stay chosen.
            setChosen(NONE);
            setStatus(currentTarget.value);
          }}
        >
          <option value="">All</option>
          {STATUSES.map((one) => (
            <option key={one} value={one}>
              {words(one)}
            </option>
          ))}
        </select>
        <button type="button" class="outline small" onClick={() => choose(rows)}>
          Choose the {count(rows.length)} shown
        </button>
        {paging.hasMore ? (
          <button type="button" class="outline small" aria-busy={busy} disabled={busy} onClick={() => void chooseAll()}>
            Choose all of the purchase
          </button>
        ) : null}
        <button type="button" class="outline secondary small" onClick={() => setChosen(NONE)}>
          Choose none
        </button>
      </div>
      {wrong === undefined ? null : <Problem>{wrong}</Problem>}
      <ChooseByReceiver transaction={transaction} reason={reason} choose={choose} />
      <p role="status">{chosen.size === 0 ? 'Choose gifts to act on them.' : `${count(chosen.size)} chosen.`}</p>
      {chosen.size === 0 ? null : <ChosenActions transaction={transaction} chosen={chosen} done={done} />}
      <PagedTable
        paging={paging}
        rows={rows}
        caption="Gifts"
        columns={[box, ...GIFT_COLUMNS.filter(({ name }) => name !== 'Transaction')]}
        keyOf={({ gift_id }) => gift_id}
        none="There is none."
      />
    </>
  );
}

interface ChosenActionsProps {
  readonly transaction: string;
  readonly chosen: Chosen;
  readonly done: () => void;
}

function ChosenActions({ transaction, chosen, done }: ChosenActionsProps) {
  const ids = [...chosen.keys()];
  const pence = [...chosen.values()].reduce((sum, value) => sum + value, 0);
  return (
    <>
      <GiftActions ids={ids} without={['reassign']} done={done} />
      <div class="actions">
        <ReassignMany ids={ids} done={done} />
        <Refund transaction={transaction} chosen={{ ids, pence }} done={done} />
      </div>
    </>
  );
}
