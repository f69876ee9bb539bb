/** Long work that nothing holds up. */
import type { Pace } from '../../../src/runtime/coordination/pace.js';

/** At full speed, whatever happens. */
export const FULL_SPEED: Pace = { polite: false, rest: async () => undefined };
