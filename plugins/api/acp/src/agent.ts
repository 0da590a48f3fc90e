import { agent, methods, PROTOCOL_VERSION } from '@agentclientprotocol/sdk'
import type { CallContext } from '@svc/core'
import { openSpace } from '@svc/storage-kit'
import { nameUnknown } from './errors.ts'
import { createSessionRecords, SPACE } from './session-records.ts'
import type { AcpServices } from './session.ts'
import { Sessions } from './sessions.ts'
import { type EditorStreams, messageStream } from './wire.ts'

/**
 * Serves one editor until it closes its output, or the signal aborts. Then all its turns are aborted. Throws CONFIG_INVALID for
 * an unknown profile or mode.
 */
export async function serveEditor(services: AcpServices, streams: EditorStreams, ctx: CallContext): Promise<void> {
  const own = { ...ctx, signal: services.lasting.signal }
  await checkNames(services, own)
  await openSpace(services.store, SPACE, {}, services.lasting)
  const records = createSessionRecords(services.store)
  const sessions: Sessions = new Sessions({
    services,
    records,
    own,
    client: {
      request: (...args: Parameters<typeof connection.client.request>) => connection.client.request(...args),
      notify: (...args: Parameters<typeof connection.client.notify>) => connection.client.notify(...args),
    },
  })
  const app = agent({ name: 'svc' })
    .onRequest(methods.agent.initialize, ({ params }) => {
      sessions.initialize(params.clientCapabilities ?? {})
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: 'svc', title: 'svc', version: services.version },
        agentCapabilities: CAPABILITIES,
        authMethods: [],
      }
    })
    .onRequest(methods.agent.session.prompt, ({ params, signal }) => sessions.prompt(params, signal))
    .onRequest(methods.agent.session.new, ({ params }) => sessions.create(params))
    .onRequest(methods.agent.session.load, ({ params }) => sessions.load(params, true))
    .onRequest(methods.agent.session.resume, ({ params }) => sessions.load(params, false))
    .onRequest(methods.agent.session.setMode, ({ params }) => sessions.setMode(params))
    .onRequest(methods.agent.session.list, ({ params }) => sessions.list(params))
    .onRequest(methods.agent.session.close, ({ params }) => sessions.close(params.sessionId))
    .onRequest(methods.agent.session.delete, ({ params }) => sessions.delete(params.sessionId))
    .onNotification(methods.agent.session.cancel, ({ params }) => sessions.cancel(params.sessionId))
  const connection = app.connect(messageStream(streams))
  const onAbort = () => connection.close()
  ctx.signal.addEventListener('abort', onAbort, { once: true })
  if (ctx.signal.aborted) onAbort()
  try {
    await connection.closed
  } finally {
    ctx.signal.removeEventListener('abort', onAbort)
    await sessions.end()
  }
}

/** What svc offers. Chat takes no images and no audio. Of the MCP servers of an editor, svc uses the local ones. */
const CAPABILITIES = {
  loadSession: true,
  promptCapabilities: { image: false, audio: false, embeddedContext: true },
  mcpCapabilities: { http: false, sse: false },
  sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
}

async function checkNames({ config: { profile, mode }, selection, modes }: AcpServices, ctx: CallContext): Promise<void> {
  if (mode !== undefined && !modes.has(mode)) throw nameUnknown('mode', mode, modes.names())
  if (profile === undefined) return
  const names = (await selection.profiles(ctx)).profiles.map(({ name }) => name)
  if (!names.includes(profile)) throw nameUnknown('profile', profile, names)
}
