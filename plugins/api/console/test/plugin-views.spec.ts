import { EventEmitter, once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { systemContext } from '@svc/core'
import { Routes } from '@svc/core/contracts'
import { testContext, testHost } from '@svc/testing'
import { expect } from 'chai'

const OWN = new URL('..', import.meta.url)
const STORE = new URL('../../../storage/memory/', import.meta.url)
const GOOD = { parts: [{ type: 'stats', request: 'GET /notes', stats: [{ title: 'Notes', value: 'count' }] }] }
const BAD = { parts: [{ ...GOOD.parts[0], request: 'GET /secret' }] }
const REQUEST = { query: {}, headers: {}, body: {} }

const PAGES = {
  good: { title: 'Good', scope: 'read', view: 'good.json' },
  bad: { title: 'Bad', scope: 'read', view: 'bad.json', place: 'overview' },
  missing: { title: 'Missing', scope: 'read', view: 'missing.json' },
  app: { title: 'App', scope: 'read' },
  admin: { title: 'Admin', scope: 'admin', view: 'good.json' },
}

/** A host with a plugin that has these pages, and the lines of its log. */
async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-views-'))
  await mkdir(join(folder, 'console'))
  const manifest = {
    name: 'svc-plugin-views',
    version: '1.0.0',
    type: 'module',
    main: 'index.mjs',
    svc: { api: 1, kind: 'page', contributes: { console_pages: PAGES }, permissions: { console: ['GET /notes'] } },
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await writeFile(
    join(folder, 'index.mjs'),
    `import { definePlugin } from '@svc/core'
import { ConsolePages } from '@svc/core/contracts'
export default definePlugin({ setup(scope) {
  for (const [name, page] of Object.entries(${JSON.stringify(PAGES)})) scope.add(ConsolePages, name, page)
} })`
  )
  await writeFile(join(folder, 'console/good.json'), JSON.stringify(GOOD))
  await writeFile(join(folder, 'console/bad.json'), JSON.stringify(BAD))
  const lines: string[] = []
  const written = new EventEmitter()
  const write = (line: string) => {
    lines.push(line)
    written.emit('line')
  }
  const log = { destination: { write } }
  const host = await testHost([STORE, OWN, pathToFileURL(`${folder}/`)], { log })
  const view = (name: string, ctx = systemContext(new AbortController().signal)) =>
    host.slot(Routes).get('console_view')!.handle!({ ...REQUEST, params: { name } }, ctx).then(
      answer => (answer as { body: unknown }).body
    )
  return {
    folder,
    host,
    lines,
    written,
    view,
    async [Symbol.asyncDispose]() {
      await host.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

describe('views of plugins', () => {
  it('are read from the package, and checked each time', async () => {
    await using opened = await open()
    const { folder, view } = opened
    expect(await view('good')).to.deep.equal({ view: GOOD, problems: [] })
    const { problems } = (await view('bad')) as { problems: string[] }
    expect(problems).to.have.lengthOf(1)
    expect(problems[0]).to.contain('parts[0].request').and.to.contain('permissions.console')
    expect(await view('missing')).to.deep.equal({
      view: null,
      problems: ['its package has no file console/missing.json'],
    })
    await writeFile(join(folder, 'console/good.json'), JSON.stringify(BAD))
    expect(await view('good')).to.deep.equal({ view: null, problems })
  })

  it('are there only for views, and for people with the scope of the page', async () => {
    await using opened = await open()
    const reader = testContext({ principal: { id: 'reader', scopes: ['read'] } })
    for (const [name, ctx] of [['app'], ['none'], ['__proto__'], ['admin', reader]] as const)
      expect(await opened.view(name, ctx).catch((error: { code: string }) => error.code), name).to.equal('NOT_FOUND')
    expect(await opened.view('good', reader)).to.deep.include({ view: GOOD })
  })

  it('with a mistake are in the log when the server starts', async () => {
    await using opened = await open()
    const { lines, written } = opened
    const about = (name: string) => lines.filter(line => line.includes('is not valid') && line.includes(`"page":"${name}"`))
    while (about('bad').length === 0 || about('missing').length === 0) await once(written, 'line')
    expect(about('bad')).to.have.lengthOf(1)
    expect(about('bad')[0]).to.contain('svc-plugin-views').and.to.contain('permissions.console')
    expect(about('missing')).to.have.lengthOf(1)
    expect([...about('good'), ...about('app')]).to.deep.equal([])
  })
})
