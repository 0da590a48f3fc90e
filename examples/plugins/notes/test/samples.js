/** Samples for the kits that `svc plugins test` and the test beside this file run. */
/** @type {import('@svc/testing').PluginSamples & { texts: string[] }} */
const samples = {
  texts: ['The backup runs at 3', '<b>Not bold</b>'],
  routes: {
    notes: [{}],
    note_add: [{ body: { text: 'The backup runs at 3' } }],
    run_notes: [{ params: { run: 'run-1' } }],
    run_note_add: [{ params: { run: 'run-1' }, body: { text: 'Started by hand' } }],
  },
}

export default samples
