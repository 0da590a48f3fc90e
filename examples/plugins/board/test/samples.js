import { deepEqual, equal, match } from 'node:assert/strict'

/**
 * Samples for the kits that `svc plugins test` and the test beside this file run. The kit starts the plugins of svc that provide
 * the services, with an empty store.
 */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  config: { board: { refresh_s: 0.1, updates: 2 } },
  routes: {
    board: [{ expect: page => match(String(page), /^<!doctype html>[^]*<th scope="col">Workflow<\/th>/) }],
    board_live: [{ expect: page => equal(String(page).match(/<main>/g)?.length, 2) }],
    board_items: [{ expect: body => deepEqual(body, { conversations: [], runs: [] }) }],
  },
}

export default samples
