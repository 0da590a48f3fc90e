import { definePlugin, type Isolate, type PluginEntry, planHost } from '@svc/core'
import { expect } from 'chai'
import { folder, packageFiles } from './support/kernel.ts'

const SVC = { api: 1, kind: 'word', contributes: { words: ['*'] }, permissions: { env: ['WORD_KEY'] } }
const BOOM = 'throw new Error("it was imported")'

/** Plans these plugins; answers what was asked to be isolated, and what is wrong. */
async function planned(entry: PluginEntry, from: string[] = [], isIsolating = true) {
  const asked: { name: string; module: string; entry: PluginEntry }[] = []
  const isolate: Isolate = async (info, item) => {
    asked.push({ name: info.name, module: info.module, entry: item })
    return definePlugin({ setup() {} })
  }
  const { problems } = await planHost({ plugins: [entry], from, ...(isIsolating ? { isolate } : {}) })
  return { asked, problems: problems.map(problem => `${problem.code} ${problem.message} ${problem.hint}`) }
}

describe('a plugin that is to run in a process of its own', () => {
  it('is found and handed on, and nothing of it is imported', async () => {
    await using dir = await folder(packageFiles('svc-plugin-word', SVC, BOOM))
    for (const use of ['svc-plugin-word', new URL('node_modules/svc-plugin-word/', dir.url)]) {
      const { asked, problems } = await planned({ use, isolation: 'process', permissions: { env: [] } }, [dir.url])
      expect(problems).to.deep.equal([])
      expect(asked[0]).to.include({ name: 'svc-plugin-word' })
      expect(asked[0]!.module).to.match(/node_modules\/svc-plugin-word\/[a-z]+\.m?js$/)
      expect(asked[0]!.entry.permissions).to.deep.equal({ env: [] })
    }
  })

  it('is found as `import` finds it, where its exports make a difference', async () => {
    const root = 'node_modules/svc-plugin-word'
    await using dir = await folder({
      [`${root}/package.json`]: {
        name: 'svc-plugin-word',
        svc: SVC,
        exports: { import: './for-import.mjs', require: './for-require.cjs' },
      },
      [`${root}/for-import.mjs`]: BOOM,
      [`${root}/for-require.cjs`]: BOOM,
    })
    for (const _ of [1, 2]) {
      const { asked, problems } = await planned({ use: 'svc-plugin-word', isolation: 'process' }, [dir.url])
      expect(problems).to.deep.equal([])
      expect(asked[0]!.module).to.match(/for-import\.mjs$/)
    }
  })

  it('is refused where the program cannot do that, or where it has no manifest', async () => {
    await using dir = await folder({ ...packageFiles('svc-plugin-word', SVC, BOOM), 'my-word.mjs': BOOM })
    const word = await planned({ use: 'svc-plugin-word', isolation: 'process' }, [dir.url], false)
    expect(word.problems[0]).to.include('NOT_ISOLABLE').and.include('isolation: "in-process"')
    expect((await planned({ use: './my-word.mjs', isolation: 'process' }, [dir.url])).problems[0]).to.include('NOT_ISOLABLE')
    const inline = { use: definePlugin({ setup() {} }), name: 'own', isolation: 'process' } as const
    expect((await planned(inline)).problems[0]).to.include('NOT_ISOLABLE')
  })

  it('is refused for an unknown word of isolation', async () => {
    const entry = { use: 'svc-plugin-word', isolation: 'proces' } as unknown as PluginEntry
    const { problems } = await planHost({ config: { plugins: [entry] } })
    expect(problems[0]!.message).to.include('"in-process" or "process"')
  })
})
