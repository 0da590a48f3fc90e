import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname } from 'node:path'
import { type CallContext, CONSOLE_PLACES, type Host, type PackageFiles, svcError, type SlotView } from '@svc/core'
import type { ConsolePage, Route, Tool } from '@svc/core/contracts'
import type { Sessions } from './session.ts'

/** Below it are the files of the pages of plugins: `<signature>/<page>/<file>`. */
export const FRAMES = '/console/frames/'
/** The folder of a package with the files of its pages. */
export const FOLDER = 'console'
/** Part of every page, as `bridge.js` beside its file. */
const BRIDGE = 'bridge.js'
/** The frame of MCP Apps. It is the same for all, and has nothing of the server in it. */
const APP = 'app.html'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.webp': 'image/webp',
  '.gif': 'image/gif',
  '.woff2': 'font/woff2',
}

/**
 * `sandbox` without `allow-same-origin`: wherever the file is opened, it has an origin of its own, without storage and workers. Forms
 * reach only the scripts of the page. It loads files of this server, without the rights of the person: the session is for requests of the
 * console alone. Browsers have nothing against the data channels of WebRTC.
 */
const POLICY = [
  'sandbox allow-scripts allow-forms',
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  'font-src data:',
  "worker-src 'none'",
  "frame-src 'none'",
  "connect-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join('; ')

/**
 * For MCP Apps, which are one document with everything in it: its scripts may run, text may not become a script, and nothing is loaded
 * from anywhere. What the app wants besides (`_meta.ui.csp`) is not granted.
 */
const APP_POLICY = [
  'sandbox allow-scripts allow-forms',
  "default-src 'none'",
  "script-src 'unsafe-inline'",
  "style-src 'unsafe-inline'",
  'img-src data: blob:',
  'media-src data: blob:',
  'font-src data:',
  "worker-src 'none'",
  "frame-src 'none'",
  "connect-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join('; ')

const HEADERS: Readonly<Record<string, string>> = {
  // the frame has an opaque origin, so each of its files is one of another origin to it
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Permissions-Policy':
    'camera=(), clipboard-read=(), clipboard-write=(), display-capture=(), fullscreen=(), geolocation=(), hid=(), microphone=(), payment=(), serial=(), usb=()',
  'Cache-Control': 'private, no-cache',
}

/** A request and its response. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly ctx: CallContext
}

/** Sends files of the pages of plugins. */
export interface Frames {
  /** `path`: below `FRAMES`. Throws NOT_FOUND. */
  send(path: string, exchange: Exchange): Promise<void>
}

export interface PagesOptions {
  readonly pages: SlotView<ConsolePage>
  readonly files: PackageFiles
  readonly host: Host
}

interface PluginPagesOptions extends PagesOptions {
  readonly tools: SlotView<Tool>
  readonly sessions: Pick<Sessions, 'sign' | 'isSigned'>
}

/** The pages of plugins: their list for the console, and their files for its frames. */
export function createPluginPages({ pages, files, host, sessions, tools }: PluginPagesOptions): {
  readonly frames: Frames
  readonly route: Route
} {
  const contentOf = (name: string, file: string, ctx: CallContext) => {
    const owner = pages.owner(name)
    return owner === undefined ? undefined : files.read(owner, `${FOLDER}/${file}`, ctx)
  }
  const frames: Frames = {
    async send(path, { request, response, ctx }) {
      const isHead = request.method === 'HEAD'
      if (path === APP)
        return sendFile(response, { content: await ownFile(APP), type: TYPES['.html']!, isHead, policy: APP_POLICY })
      const [, signature = '', name = '', file = ''] = /^([^/]+)\/([^/]+)\/(.+)$/.exec(path) ?? []
      const type = TYPES[extname(file)]
      if (type === undefined || !(await sessions.isSigned(name, signature))) throw fileUnknown()
      const isBridge = file === BRIDGE || file.endsWith(`/${BRIDGE}`)
      const content = isBridge ? await ownFile(BRIDGE) : await contentOf(name, file, ctx)
      if (content === undefined) throw fileUnknown()
      sendFile(response, { content, type, isHead, policy: POLICY })
    },
  }
  const recordOf = async (name: string, page: ConsolePage, rights: RightsOf) => {
    const plugin = pages.owner(name) ?? ''
    const { title, place = 'page' } = page
    const file = `${name}/${page.file ?? 'index.html'}`
    const url = page.view === undefined ? `${FRAMES}${await sessions.sign(name)}/${file}` : null
    // a name that another plugin has taken meanwhile is a tool of another plugin
    const its = (page.tools ?? []).filter(tool => place === 'tool_result' && tools.owner(tool) === plugin)
    return { name, plugin, title, place, url, requests: rights(plugin), tools: its }
  }
  return {
    frames,
    route: listRoute(async ctx => {
      const rights = await requestsOf(host, ctx)
      const shown = pages.entries().filter(([, page]) => isShownTo(ctx, page))
      return Promise.all(shown.map(([name, page]) => recordOf(name, page, rights)))
    }),
  }
}

type RightsOf = (plugin: string) => string[]

/** The requests that the pages of each plugin can send. */
export async function requestsOf(host: Host, ctx: CallContext): Promise<RightsOf> {
  const { plugins } = await host.report(ctx)
  return plugin => [...(plugins.find(({ name }) => name === plugin)?.permissions.console ?? [])]
}

export const isShownTo = ({ principal: { scopes } }: CallContext, { scope }: ConsolePage): boolean =>
  scopes.includes('*') || scopes.includes(scope)

interface File {
  readonly content: Uint8Array
  readonly type: string
  readonly isHead: boolean
  readonly policy: string
}

/** A file of this package. */
const ownFile = (name: string) => readFile(new URL(`../${name}`, import.meta.url))

function sendFile(response: ServerResponse, { content, type, isHead, policy }: File): void {
  // the console frames the page; the policy says so
  response.removeHeader('X-Frame-Options')
  response.writeHead(200, {
    ...HEADERS,
    'Content-Security-Policy': policy,
    'Content-Type': type,
    'Content-Length': content.byteLength,
  })
  response.end(isHead ? undefined : content)
}

const STRING = { type: 'string' } as const

const PAGE = {
  title: 'ConsolePage',
  type: 'object',
  additionalProperties: false,
  required: ['name', 'plugin', 'title', 'place', 'url', 'requests', 'tools'],
  properties: {
    name: STRING,
    plugin: STRING,
    title: STRING,
    place: {
      enum: CONSOLE_PLACES,
      description:
        'Where it is shown: as a page, on the overview, as a tab of each run or conversation, or in place of results of tools.',
    },
    url: {
      type: ['string', 'null'],
      description: 'The path of the file of an app, for a frame of the console. It is valid for a day. Null for a view.',
    },
    requests: {
      type: 'array',
      items: STRING,
      description: 'The requests that the page can send through the console, as in `permissions.console` of the plugin.',
    },
    tools: {
      type: 'array',
      items: STRING,
      description: 'The tools whose results it shows, in the place `tool_result`: those that its own plugin provides now.',
    },
  },
} as const

const PAGES = {
  type: 'object',
  additionalProperties: false,
  required: ['pages'],
  properties: { pages: { type: 'array', items: PAGE } },
} as const

type Records = readonly { readonly [member: string]: string | string[] | null }[]

const listRoute = (list: (ctx: CallContext) => Promise<Records>): Route => ({
  method: 'GET',
  path: '/api/v1/console/pages',
  summary: 'List the pages of plugins in the console',
  description: 'Only the pages whose scope the caller has.',
  scope: 'read',
  query: { type: 'object', properties: {}, additionalProperties: false },
  responses: { 200: { description: 'The pages, in the order of their plugins.', schema: PAGES } },
  handle: async (_request, ctx) => ({ body: { pages: [...(await list(ctx))] } }),
})

const fileUnknown = () => svcError('NOT_FOUND', 'the console has no such file of a page')
