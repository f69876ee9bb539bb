/**
 * Off by default, at the cost of one comparison each. A trace leads from a request over its events to the notification:
 * as a W3C `traceparent` (https://www.w3.org/TR/trace-context/) in events' metadata and with bus messages' payloads.
 */

/** Never personal, never secret, no whole gift id (docs/decisions.md#access-records). */
export type Attribute = string | number | boolean;

export interface SpanDescription {
  readonly name: string;
  readonly kind?: 'internal' | 'server' | 'client' | 'consumer';
  readonly attributes?: Readonly<Record<string, Attribute>>;
  /** A `traceparent`; default: the current span. An invalid one starts a trace. */
  readonly parent?: string | undefined;
  /** Name the parent instead, in any form that the propagators understand. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  readonly links?: readonly string[];
}

export interface Span {
  rename(name: string): void;
  set(attributes: Readonly<Record<string, Attribute>>): void;
  /** Only with the kind of error: messages may contain anything. */
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
