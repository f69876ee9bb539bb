/** Routes frames between peers. Every client is a peer, also the broker's own. */
import type { Frame, Header } from './frames.js';

export interface Peer {
  send(frame: Frame): void;
  /** Resolves when the send buffer is empty or the peer is gone; `undefined` while the buffer has room. */
  congested(): Promise<void> | undefined;
  /** Stops reading the peer's frames until the promise resolves: backpressure on senders to a congested peer. */
  hold(until: Promise<void>): void;
}

export interface Router {
  receive(from: Peer, frame: Frame): void;
  /** Removes the peer's services and requests. Requests that it was to answer end as `gone`. */
  leave(peer: Peer): void;
}

/** A request goes to one peer of each queue group; the first answer counts. */
interface Request {
  readonly from: Peer;
  readonly id: number;
  open: number;
  gone: boolean;
}

interface Ask {
  readonly request: Request;
  readonly to: Peer;
}

export function openRouter(onRefused: (error: Error) => void): Router {
  const groups = new Map<string, Map<string, Peer[]>>();
  const listeners = new Map<string, Set<Peer>>();
  const asks = new Map<number, Ask>();
  const requests = new Map<Peer, Map<number, Request>>();
  let lastAsk = 0;

  const hand = (from: Peer, to: Peer, frame: Frame): void => {
    to.send(frame);
    const until = to.congested();
    if (until !== undefined && from !== to) from.hold(until);
  };

  const forget = (request: Request): void => {
    requests.get(request.from)?.delete(request.id);
    request.open = 0;
  };

  const answer = (from: Peer, request: Request, header: Header, body: string): void => {
    forget(request);
    hand(from, request.from, { header, body });
  };

  const withdraw = (subject: string, queue: string, peer: Peer): void => {
    const queues = groups.get(subject);
    const peers = queues?.get(queue)?.filter((one) => one !== peer) ?? [];
    if (peers.length > 0) queues?.set(queue, peers);
    else queues?.delete(queue);
    if (queues?.size === 0) groups.delete(subject);
  };

  const serve = (subject: string, queue: string, peer: Peer): void => {
    const queues = groups.get(subject) ?? new Map<string, Peer[]>();
    const peers = queues.get(queue) ?? [];
    if (!peers.includes(peer)) peers.push(peer);
    queues.set(queue, peers);
    groups.set(subject, queues);
  };

  const listen = (subject: string, peer: Peer): void => {
    listeners.set(subject, (listeners.get(subject) ?? new Set()).add(peer));
  };

  const unlisten = (subject: string, peer: Peer): void => {
    const peers = listeners.get(subject);
    peers?.delete(peer);
    if (peers?.size === 0) listeners.delete(subject);
  };

  const ask = (from: Peer, id: number, subject: string, body: string): void => {
    const queues = groups.get(subject);
    if (queues === undefined) return from.send({ header: { t: 'none', i: id }, body: '' });
    const request: Request = { from, id, open: queues.size, gone: false };
    const own = requests.get(from) ?? new Map<number, Request>();
    requests.set(from, own.set(id, request));
    for (const [queue, peers] of queues) {
      const to = peers.shift() as Peer;
      peers.push(to);
      asks.set(++lastAsk, { request, to });
      hand(from, to, { header: { t: 'ask', i: lastAsk, s: subject, q: queue }, body });
    }
  };

  const missed = (from: Peer, { request }: Ask, gone: boolean): void => {
    request.gone ||= gone;
    if (request.open === 0 || --request.open > 0) return;
    answer(from, request, { t: request.gone ? 'gone' : 'none', i: request.id }, '');
  };

  const answered = (from: Peer, header: Extract<Header, { t: 'rep' | 'none' } | { t: 'err' }>, body: string): void => {
    const found = asks.get(header.i);
    if (found?.to !== from) return onRefused(new Error('a bus answer that nobody waits for'));
    asks.delete(header.i);
    if (header.t === 'none') missed(from, found, false);
    else if (found.request.open > 0) answer(from, found.request, { ...header, i: found.request.id }, body);
  };

  return {
    receive(from, { header, body }) {
      switch (header.t) {
        case 'serve':
          return serve(header.s, header.q, from);
        case 'unserve':
          return withdraw(header.s, header.q, from);
        case 'sub':
          return listen(header.s, from);
        case 'unsub':
          return unlisten(header.s, from);
        case 'pub':
          for (const to of listeners.get(header.s) ?? []) hand(from, to, { header, body });
          return undefined;
        case 'req':
          return ask(from, header.i, header.s, body);
        case 'rep':
        case 'err':
        case 'none':
          return answered(from, header, body);
        case 'drop': {
          const request = requests.get(from)?.get(header.i);
          if (request !== undefined) forget(request);
          return undefined;
        }
        case 'ping':
          return from.send({ header: { t: 'pong', i: header.i }, body: '' });
        case 'ask':
        case 'gone':
        case 'pong':
          return onRefused(new Error(`a bus frame that only the broker sends: ${header.t}`));
        default:
          return header satisfies never;
      }
    },

    leave(peer) {
      for (const [subject, queues] of groups) for (const queue of queues.keys()) withdraw(subject, queue, peer);
      for (const subject of listeners.keys()) unlisten(subject, peer);
      for (const request of requests.get(peer)?.values() ?? []) request.open = 0;
      requests.delete(peer);
      for (const [id, found] of asks) {
        if (found.to !== peer) continue;
        asks.delete(id);
        missed(peer, found, true);
      }
    },
  };
}
