import { definePlugin, Host, LogLines, systemContext } from '@svc/core'
import { PeerAnswers, Peers, Routes } from '@svc/core/contracts'
import { createGathering, TOPIC } from './gathering.ts'
import { createLogsRoute } from './route.ts'

/** Streams end before the server waits for open requests. */
const LEAVING = -100

/** The log over HTTP. Each worker keeps its last lines; a request gathers those of all workers. */
export default definePlugin({
  requires: { host: Host, lines: LogLines },
  optional: { peers: Peers },
  async setup(scope, { host, lines, peers }) {
    const lasting = systemContext(scope.signal, 'logs')
    const { worker } = await host.report(lasting)
    const gathering = createGathering({ lines, peers, worker, lasting })
    scope.tap(Peers.hooks.message, ({ topic, message }) => (topic === TOPIC ? gathering.onQuestion(message) : undefined))
    scope.add(PeerAnswers, TOPIC, gathering.answers)
    const leaving = new AbortController()
    scope.tap(Host.hooks.closing, () => leaving.abort(), { stage: LEAVING })
    scope.add(Routes, 'logs', createLogsRoute(gathering, leaving.signal))
  },
})
