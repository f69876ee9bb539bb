/** Parked work of a gift or a purchase, on its page: why it waits, what can be done, and how a retry of it goes. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ParkedView } from '../../src/ops/parked/parkedView.js';
import { isInProgress, useParkedPiece } from '../service/parkedPiece.js';
import { Done, Shown } from './page.js';
import { PieceActions } from './parkedActions.js';
import { count, Id, parkedPath, Time, words } from './text.js';

interface WaitingWorkProps {
  /** Id of the gift or the transaction. */
  readonly of: string;
  /** Called when the work is handed back, discarded, done, or parked again. */
  readonly changed: () => void;
}

export function WaitingWork({ of, changed }: WaitingWorkProps) {
  const work = useParkedPiece(of);
  const { value } = work;
  const state = value ? `${value.id} ${value.changed_at} ${value.settled}` : undefined;
  const before = useRef<string>();
  useEffect(() => {
    if (before.current !== undefined && state !== undefined) changed();
    before.current = state;
  }, [state]);
  const wasHere = useRef(false);
  wasHere.current ||= value?.state === 'parked';
  return (
    <Shown of={work}>
      {(piece) => {
        if (piece === null) return null;
        if (piece.state === 'parked')
          return (
            <Waiting piece={piece}>
              <PieceActions piece={piece} done={work.reload} />
            </Waiting>
          );
        const progress = isInProgress(piece) ? 'It is being done once more.' : wasHere.current ? 'It has ended.' : '';
        return progress === '' ? null : (
          <Waiting piece={piece}>{wasHere.current ? <Done>{progress}</Done> : <p role="status">{progress}</p>}</Waiting>
        );
      }}
    </Shown>
  );
}

interface WaitingProps {
  readonly piece: ParkedView;
  readonly children: ComponentChildren;
}

function Waiting({ piece: { id, process, step, state, times, changed_at, cause }, children }: WaitingProps) {
  return (
    <>
      <h2>Parked work</h2>
      <p>
        {words(process)}: {words(step).toLowerCase()} (<Id of={id} to={parkedPath} />)
      </p>
      <p>
        {words(state)} <Time at={changed_at} />, parked {times === 1 ? 'once' : `${count(times)} times`}: {cause}
      </p>
      {children}
    </>
  );
}
