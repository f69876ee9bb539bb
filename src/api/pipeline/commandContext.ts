import type { CommandContext } from '../../commands/context.js';
import type { Caller } from '../../ports/eventStore.js';
import { type Principal, rolesOf } from './principal.js';
import type { EarlyCall } from './route.js';

/** @param now ISO 8601, UTC, milliseconds */
export function commandContext(call: EarlyCall, now: string): CommandContext {
  return {
    commandId: call.commandId,
    ...(call.bodyHash === undefined ? {} : { bodyHash: call.bodyHash }),
    correlationId: call.requestId,
    requestId: call.requestId,
    by: callerOf(call.principal),
    now,
  };
}

function callerOf(principal: Principal): Caller {
  switch (principal.kind) {
    case 'anonymous':
      return {};
    case 'client':
      return { client: principal.clientId };
    case 'user': {
      const { clientId: client, user } = principal;
      return { user: user.id, client, roles: [...rolesOf(principal), ...user.permissions] };
    }
    default:
      return principal satisfies never;
  }
}
