import { isTree } from '@svc/core'
import type { McpApp, McpToolUi } from '@svc/core/contracts'
import { protocolError } from './failures.ts'

/** Of MCP Apps, 2026-01-26. */
export const APP_TYPE = 'text/html;profile=mcp-app'
/** Limit on the characters of an app. */
export const MAX_APP = 2_097_152
/** Without spaces and hidden characters. */
const APP_URI = /^ui:\/\/[^\s\p{C}]{1,1000}$/u

const CALLERS = ['model', 'app'] as const

/**
 * Reads `_meta.ui` of a tool. Drops what has no effect: addresses of other schemes, unknown callers. So a pin covers everything that
 * has one.
 */
export function readToolUi(meta: unknown): { readonly ui?: McpToolUi } {
  const ui = isTree(meta) ? meta['ui'] : undefined
  if (!isTree(ui)) return {}
  const { resourceUri, visibility } = ui
  const callers = Array.isArray(visibility) ? CALLERS.filter(name => visibility.includes(name)) : CALLERS
  const hasApp = typeof resourceUri === 'string' && APP_URI.test(resourceUri)
  if (!hasApp && callers.length === CALLERS.length) return {}
  return { ui: { ...(hasApp && { resourceUri }), visibility: [...callers] } }
}

/** Reads the result of `resources/read`: the page of this address, and no other. Throws MCP_CALL_FAILED. */
export function readApp(server: string, uri: string, result: unknown): McpApp {
  const contents = isTree(result) ? result['contents'] : undefined
  const content: unknown = Array.isArray(contents) ? contents[0] : undefined
  if (!isTree(content) || content['uri'] !== uri) throw protocolError(server, `it does not answer with the app ${uri}`)
  if (typeOf(content['mimeType']) !== APP_TYPE) throw protocolError(server, `its app ${uri} does not have the type ${APP_TYPE}`)
  const html = textOf(content)
  if (html === undefined) throw protocolError(server, `its app ${uri} has no text`)
  if (html.length > MAX_APP) throw protocolError(server, `its app ${uri} is larger than ${MAX_APP} characters`)
  return { uri, html }
}

const typeOf = (value: unknown) => (typeof value === 'string' ? value.replaceAll(/\s/g, '').toLowerCase() : '')

/** Each character of Base64 is at most three quarters of one. */
function textOf({ text, blob }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof text === 'string') return text
  return typeof blob === 'string' ? Buffer.from(blob, 'base64').toString() : undefined
}
