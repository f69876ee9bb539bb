/** The frame of every page: its heading, which takes the focus, and what it shows of the service. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Loaded } from '../service/loaded.js';

interface PageProps {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Page({ title, lead, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = `${title} – Gift Commerce console`;
    // A screen reader begins with the new page, as it would after a full load.
    heading.current?.focus();
  }, [title]);
  return (
    <>
      <h1 tabIndex={-1} ref={heading}>
        {title}
      </h1>
      {lead === undefined ? null : <p class="lead">{lead}</p>}
      {children}
    </>
  );
}

export function Problem({ children }: { readonly children: ComponentChildren }) {
  return (
    <p role="alert" class="problem">
      {children}
    </p>
  );
}

/** What was done, where the action that did it is gone. It takes the focus, which was in that action. */
export function Done({ children }: { readonly children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => box.current?.focus(), [children]);
  return (
    <div class="done" role="status" tabIndex={-1} ref={box}>
      {children}
    </div>
  );
}

interface ShownProps<T> {
  readonly of: Loaded<T>;
  readonly children: (value: T) => ComponentChildren;
}

/** What was loaded. A failure stands above it, with a button for another try; an earlier value stays. */
export function Shown<T>({ of: { value, error, loading, reload }, children }: ShownProps<T>) {
  return (
    <div aria-busy={loading && value === undefined}>
      {error === undefined ? null : (
        <div role="alert" class="problem">
          <p>{error}</p>
          <button type="button" class="outline" onClick={reload}>
            Try again
          </button>
        </div>
      )}
      {value === undefined ? error === undefined ? <p role="status">Loading…</p> : null : children(value)}
    </div>
  );
}
