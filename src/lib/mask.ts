export const MASK = '***';
