/** Erasures over HTTP, which take two users of support. */
import type { Reply, Service } from './service.js';

/** The second one; the catalogue has Sue. */
export const SID = {
  users: [{ id: 'sid', username: 'sid@test.example', password: 'sid-password', name: 'Sid', roles: ['support'] }],
};

const BODY = { reason: 'asked for it' };

/** Sue requests it and Sid, who must have been imported, approves. @returns the first refusal, or the last answer */
export async function erase(service: Service, person: string): Promise<Reply> {
  const path = `/ops/people/${person}/erasure`;
  const requested = await service.ask('POST', path, { token: await service.userToken('sue'), body: BODY });
  if (requested.status !== 202) return requested;
  return service.ask('POST', `${path}/approve`, { token: await service.userToken('sid'), body: BODY });
}
