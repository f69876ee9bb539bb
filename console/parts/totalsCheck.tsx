/** Whether totals agree with the streams that they were folded from. */
import type { TotalsCheck } from '../../src/ops/totals/checkTotals.js';
import { Problem } from './page.js';
import { Shortened } from './table.js';
import { count, giftPath, Id, transactionPath, words } from './text.js';

export function TotalsChecked({ check }: { readonly check: TotalsCheck }) {
  const { agree, transactions, gifts, not_issued_yet, differences, differences_found, faults, faults_found } = check;
  const read = `${count(transactions)} transactions and ${count(gifts)} gifts`;
  const open = not_issued_yet === 0 ? '' : ` ${count(not_issued_yet)} gifts are paid for and not issued yet.`;
  if (agree)
    return (
      <p role="status" class="done">
        The totals agree with the streams of {read} to the penny.{open}
      </p>
    );
  return (
    <>
      <Problem>
        The totals differ from the streams of {read}: {count(differences_found)} differences, {count(faults_found)}{' '}
        faults.{open}
      </Problem>
      <Shortened
        caption="Differences"
        columns={[
          { name: 'Day', cell: ({ day }) => day },
          { name: 'Merchant', cell: ({ merchant_id }) => <span class="id">{merchant_id}</span> },
          { name: 'Sum', cell: ({ field }) => words(field) },
          { name: 'By the log', cell: ({ log }) => count(log), number: true },
          { name: 'By the streams', cell: ({ streams }) => count(streams), number: true },
        ]}
        rows={differences}
        keyOf={({ day, merchant_id, field }) => `${day} ${merchant_id} ${field}`}
        none="No sum differs."
      />
      <Shortened
        caption="Faults"
        columns={[
          { name: 'Transaction', cell: ({ transaction_id }) => <Id of={transaction_id} to={transactionPath} /> },
          {
            name: 'Gift',
            cell: ({ gift_id }) => (gift_id === undefined ? '–' : <Id of={gift_id} to={giftPath} />),
          },
          { name: 'Fault', cell: ({ fault }) => fault },
        ]}
        rows={faults}
        keyOf={({ transaction_id, gift_id, fault }) => `${transaction_id} ${gift_id ?? ''} ${fault}`}
        none="No stream has a fault."
      />
    </>
  );
}
