import { type CallContext, CONSOLE_VIEW, type Log, type PackageFiles, readConsoleView, svcError } from '@svc/core'
import type { ConsolePage, Route } from '@svc/core/contracts'
import { FOLDER, isShownTo, type PagesOptions, requestsOf } from './plugin-pages.ts'

/** A view as the console gets it. */
interface ViewRecord {
  readonly view: object | null
  readonly problems: readonly string[]
}

/** The views of plugins, read from their packages and checked each time, so that the console draws no other. */
export interface PluginViews {
  readonly route: Route
  /** Logs what is wrong with the views among these pages. */
  inspect(names: readonly string[], ctx: CallContext): Promise<void>
}

export function createPluginViews({ pages, files, host, log }: PagesOptions & { readonly log: Log }): PluginViews {
  const read = async (name: string, { view, place = 'page' }: ConsolePage, ctx: CallContext): Promise<ViewRecord> => {
    const owner = pages.owner(name)
    if (owner === undefined || view === undefined) throw viewUnknown()
    const rights = await requestsOf(host, ctx)
    const text = await textOf(files, { owner, file: `${FOLDER}/${view}` }, ctx)
    if (text === undefined) return { view: null, problems: [`its package has no file ${FOLDER}/${view}`] }
    const checked = readConsoleView(text, { rights: rights(owner), place })
    return { view: checked.view ?? null, problems: checked.problems }
  }
  return {
    route: viewRoute(async (name, ctx) => {
      const page = pages.get(name)
      if (page === undefined || !isShownTo(ctx, page)) throw viewUnknown()
      return read(name, page, ctx)
    }),
    async inspect(names, ctx) {
      for (const name of names) {
        const page = pages.get(name)
        if (page?.view === undefined) continue
        const { problems } = await read(name, page, ctx)
        if (problems.length > 0)
          log.warn({ page: name, plugin: pages.owner(name), problems }, 'a view of the console is not valid')
      }
    },
  }
}

interface FileOf {
  readonly owner: string
  readonly file: string
}

async function textOf(files: PackageFiles, { owner, file }: FileOf, ctx: CallContext): Promise<string | undefined> {
  const content = await files.read(owner, file, ctx)
  return content && new TextDecoder().decode(content)
}

const RECORD = {
  type: 'object',
  additionalProperties: false,
  required: ['view', 'problems'],
  properties: {
    view: { anyOf: [CONSOLE_VIEW, { type: 'null' }], description: 'Null if it is not valid.' },
    problems: { type: 'array', items: { type: 'string' }, description: 'What is wrong with it, for its author.' },
  },
} as const

const viewRoute = (view: (name: string, ctx: CallContext) => Promise<ViewRecord>): Route => ({
  method: 'GET',
  path: '/api/v1/console/pages/:name/view',
  summary: 'Read the view of a page in the console',
  description: 'A view is data that the console draws. Only if the caller has the scope of the page.',
  scope: 'read',
  query: { type: 'object', properties: {}, additionalProperties: false },
  responses: { 200: { description: 'The view.', schema: RECORD } },
  handle: async ({ params: { name = '' } }, ctx) => ({ body: { ...(await view(name, ctx)) } }),
})

const viewUnknown = () => svcError('NOT_FOUND', 'the console has no such view')
