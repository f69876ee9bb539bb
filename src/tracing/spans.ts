/**
 * Spans of traces: off by default, when each costs one comparison. A trace leads from a request over its events to the
 * notification. Events' metadata and bus messages' payloads carry it as a W3C `traceparent`
 * (https://www.w3.org/TR/trace-context/).
 */

/** A span's attribute: never personal, never secret, no whole gift id (docs/support.md#access-records). */
export type Attribute = string | number | boolean;

export interface SpanDescription {
  readonly name: string;
  readonly kind?: 'internal' | 'server' | 'client' | 'consumer';
  readonly attributes?: Readonly<Record<string, Attribute>>;
  /** The parent's `traceparent`; default: the current span. An invalid text starts a new trace. */
  readonly parent?: string | undefined;
  /** Request headers that name the parent instead, in any form that the propagators understand. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  readonly links?: readonly string[];
}

export interface Span {
  rename(name: string): void;
  set(attributes: Readonly<Record<string, Attribute>>): void;
  /** Marks the span as failed, with the kind of error only: an error's message may contain anything. */
  fail(kind: string): void;
}

export interface Tracing {
  run<T>(description: SpanDescription, work: (span: Span) => Promise<T>): Promise<T>;
  current(): string | undefined;
}

let active: Tracing | undefined;

export function switchTracing(tracing: Tracing | undefined): void {
  active = tracing;
}

export function tracingOn(): boolean {
  return active !== undefined;
}

export async function inSpan<T>(describe: () => SpanDescription, work: (span: Span) => Promise<T>): Promise<T> {
  return active === undefined ? work(NO_SPAN) : active.run(describe(), work);
}

export function currentTrace(): string | undefined {
  return active?.current();
}

const NO_SPAN: Span = { rename: () => undefined, set: () => undefined, fail: () => undefined };
