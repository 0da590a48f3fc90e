import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Browser } from 'playwright-core'
import { newHome, type Service, type ServiceOptions, startService } from '../../support/service.ts'
import { type Console, type ConsoleOptions, openBrowser, openConsole } from './browser.ts'
import { writeFlows } from './flows.ts'

/** What the server of a file of tests has. */
export interface ConsoleSetup extends Pick<ServiceOptions, 'args' | 'cwd' | 'env'> {
  /** The content of `svc.config.json`. The server changes YAML files only: tests of changes write theirs with `files`. */
  readonly config?: object
  /** The texts of its workflows by name, {@link FLOWS} for instance. */
  readonly flows?: Readonly<Record<string, string>>
  /** The texts of further files by their path in the home. */
  readonly files?: Readonly<Record<string, string>>
  /** Starts the server in another way than {@link startService}. */
  readonly start?: (options: ServiceOptions) => Promise<Service>
}

/** A server and a browser. Its properties are there when the tests run, not before. */
export interface UsedConsole {
  readonly browser: Browser
  /** The address of the server. */
  readonly url: string
  /** The folder of its state. */
  readonly home: string
  /** The address of a page: `at('runs?id=1')`. */
  readonly at: (path: string) => string
  /** Opens a page in a context of its own: `await using view = await open('runs')`. */
  readonly open: (path: string, options?: ConsoleOptions) => Promise<Console>
}

/** Starts first what the server needs, such as a model, and adds it to `ends`, which closes it. */
type SetupFunction = (ends: AsyncDisposableStack, home: string) => Promise<ConsoleSetup>

/** Starts a server and a browser before the tests of this `describe`, and ends both after them. */
export function useConsole(setup: ConsoleSetup | SetupFunction = {}): UsedConsole {
  const ends = new AsyncDisposableStack()
  let started: { readonly browser: Browser; readonly service: Service } | undefined
  before(async () => {
    // builds the pages, so it comes before the server that reads them
    const browser = await openBrowser()
    ends.defer(() => browser.close())
    const home = await newHome()
    ends.defer(() => rm(home, { recursive: true, force: true }))
    const {
      start = startService,
      config,
      flows,
      files,
      ...options
    } = typeof setup === 'function' ? await setup(ends, home) : setup
    await writeHome(home, { config, flows, files })
    started = { browser, service: ends.use(await start({ ...options, home })) }
  })
  after(() => ends.disposeAsync())
  const running = () => {
    if (started === undefined) throw new Error('The server starts before the tests: use it in `it`, `before` or `beforeEach`.')
    return started
  }
  const at = (path: string) => `${running().service.url}/console/${path}`
  return {
    get browser() {
      return running().browser
    },
    get url() {
      return running().service.url
    },
    get home() {
      return running().service.home
    },
    at,
    open: (path, options) => openConsole(running().browser, at(path), options),
  }
}

async function writeHome(home: string, { config, flows, files = {} }: Omit<ConsoleSetup, 'start'>): Promise<void> {
  if (flows !== undefined) await writeFlows(home, flows)
  const texts = config === undefined ? files : { ...files, 'svc.config.json': JSON.stringify(config) }
  for (const [path, text] of Object.entries(texts)) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), text)
  }
}
