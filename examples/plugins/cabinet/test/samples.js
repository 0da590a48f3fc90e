import { join } from 'node:path'

/**
 * Samples for the kits that `svc plugins test` and the test beside this file run. Each case has its own file. A second start
 * with the same file finds the data.
 */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  config: ({ folder }) => ({ cabinet: { file: join(folder, 'cabinet.db') } }),
  lasts: true,
}

export default samples
