import { existsSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type KitRun, pluginKit } from '@svc/testing'
import { expect } from 'chai'

const SQLITE = new URL('../../../plugins/storage/sqlite/', import.meta.url)

describe('pluginKit, with a configuration for each case', function () {
  this.timeout(60_000)

  it('proves that a store keeps its data, in a folder of each case', async () => {
    const runs: KitRun[] = []
    const config = (run: KitRun) => {
      runs.push(run)
      return { store: { path: `${run.folder}/data.db` } }
    }
    const cases = (await pluginKit(SQLITE, { config, lasts: true })).filter(({ title }) => title.startsWith('store:'))
    const lasting = cases.filter(({ title }) => /again|reopen|restart|last/.test(title))
    expect(lasting.length).to.be.above(0)
    runs.length = 0
    for (const testCase of lasting) await testCase.run.call(undefined)
    // the hosts of one case have the same run, those of another case have another
    const folders = new Set(runs.map(run => run.folder))
    expect(folders.size).to.equal(lasting.length)
    expect(runs.length).to.be.above(lasting.length)
    expect(new Set(runs.map(run => run.id)).size).to.equal(lasting.length)
    expect([...folders].filter(folder => existsSync(folder))).to.deep.equal([])
  })

  it('says how a test adds the services that a plugin requires', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-needy-'))
    const manifest = { api: 1, kind: 'service', permissions: { services: ['store', 'chat'] } }
    const code = (services: string) => `import { definePlugin } from '@svc/core'
import { Chat, Store } from '@svc/core/contracts'
export default definePlugin({ requires: ${services}, setup() {} })`
    try {
      await symlink(fileURLToPath(new URL('../../../node_modules', import.meta.url)), join(folder, 'node_modules'))
      const file = { name: 'svc-plugin-needy', version: '1.0.0', type: 'module', main: 'index.js', svc: manifest }
      await writeFile(join(folder, 'package.json'), JSON.stringify(file))
      await writeFile(join(folder, 'index.js'), code('{ store: Store, chat: Chat }'))
      const [starts] = await pluginKit(folder)
      const message = await starts!.run.call(undefined).then(
        () => 'it passed',
        (error: Error) => error.message
      )
      expect(message)
        .to.include('SERVICE_MISSING')
        .and.include(`provides "store" in "beside" of the options of pluginKit (beside: ['@svc/plugin-store-memory'])`)
        .and.include('provides "chat" in "beside" of the options of pluginKit, with')
        .and.include('`svc plugins test` adds the built-in plugins by itself')
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  it('checks formats of errors as the server does', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-dialect-'))
    const svc = { api: 1, kind: 'routes', contributes: { error_formats: { good: { path: '/v1' }, bad: { path: '/v2' } } } }
    const code = `import { definePlugin } from '@svc/core'
import { ErrorFormats } from '@svc/core/contracts'
const body = ({ record }) => ({ error: { message: record.error } })
export default definePlugin({ setup(scope) {
  scope.add(ErrorFormats, 'good', { path: '/v1', format: async failed => ({ body: body(failed), headers: { 'Request-Id': failed.requestId } }) })
  scope.add(ErrorFormats, 'bad', { path: '/v2', format: async failed => ({ body: body(failed), headers: { 'set-cookie': 'a=1' } }) })
} })`
    try {
      await symlink(fileURLToPath(new URL('../../../node_modules', import.meta.url)), join(folder, 'node_modules'))
      const file = { name: 'svc-plugin-dialect', version: '1.0.0', type: 'module', main: 'index.js', svc }
      await writeFile(join(folder, 'package.json'), JSON.stringify(file))
      await writeFile(join(folder, 'index.js'), code)
      const cases = (await pluginKit(folder)).filter(({ title }) => title.startsWith('error_formats '))
      const results = cases.map(async ({ title, run }) => [
        title,
        await run.call(undefined).then(
          () => 'passed',
          (error: Error) => error.message.split('\n')[0]
        ),
      ])
      expect(Object.fromEntries(await Promise.all(results))).to.deep.equal({
        'error_formats good: formats an error of each kind': 'passed',
        'error_formats good: formats a long text': 'passed',
        'error_formats bad: formats an error of each kind': 'it has headers that the server leaves out: set-cookie',
        'error_formats bad: formats a long text': 'it has headers that the server leaves out: set-cookie',
      })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  it('leaves the svc home of the user alone', async () => {
    const [outer, home] = [process.env.SVC_HOME, join(tmpdir(), `svc-untouched-${process.pid}`)]
    process.env.SVC_HOME = home
    try {
      const cases = (await pluginKit(SQLITE, {})).filter(({ title }) => title.startsWith('starts with its configuration'))
      expect(cases).to.have.length(1)
      for (const testCase of cases) await testCase.run.call(undefined)
      expect([existsSync(home), process.env.SVC_HOME]).to.deep.equal([false, home])
    } finally {
      if (outer === undefined) delete process.env.SVC_HOME
      else process.env.SVC_HOME = outer
      await rm(home, { recursive: true, force: true })
    }
  })

  it('reports a store that does not keep what its author says it does', async () => {
    const memory = new URL('../../../plugins/storage/memory/', import.meta.url)
    const cases = (await pluginKit(memory, { lasts: true })).filter(({ title }) => /again|reopen|restart|last/.test(title))
    const failed = await Promise.all(
      cases.map(testCase =>
        testCase.run.call(undefined).then(
          () => '',
          () => testCase.title
        )
      )
    )
    expect(failed.join('')).to.not.equal('')
  })
})
