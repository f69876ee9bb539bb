/** What other folders may use of the diagnosis: only this file is imported from outside. */
export { diagnose, type DiagnosisSources } from './diagnose.js';
export { type Finding, FINDING_CODES, HARMS, settingsFindings } from './findings.js';
