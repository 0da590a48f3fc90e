import { isolate } from '@svc/runtime/isolation'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'
import { folder, problemOf } from './support/kernel.ts'

const BROKEN = { name: 'svc-plugin-broken', version: '1.0.0', type: 'module', main: 'index.js', svc: { api: 1, kind: 'tool' } }

describe('a module that breaks the grammar', () => {
  it('is reported by file and line, below the folder of its plugin', async () => {
    const texts = {
      'index.js': ['export const a = 1\nexport default {', 'index.js:2'],
      'src/deep.js': ['\n\nexport const y = = 3', 'src/deep.js:3'],
      'strict.ts': ['\nexport const a: = 3', 'strict.ts:2'],
      'old.cjs': ['\nconst a = = 3', 'old.cjs:2'],
      'lacks.js': ["\nimport { nope } from './package.json' with { type: 'json' }", 'lacks.js:2'],
    } as const
    for (const [file, [text, where]] of Object.entries(texts)) {
      const entry = `import './${file}'\nexport default { setup() {} }`
      const files = { 'index.js': entry, [file]: text, 'package.json': BROKEN }
      await using dir = await folder(Object.fromEntries(Object.entries(files).map(([name, item]) => [`broken/${name}`, item])))
      const error = await problemOf({ plugins: ['./broken'], from: [dir.url] })
      expect(error, file).to.include({ code: 'PLUGIN_IMPORT_FAILED', plugin: 'svc-plugin-broken', where })
    }
  })

  it('is found through modules that are sound, with types or without, and through data', async () => {
    await using dir = await folder({
      'broken/package.json': BROKEN,
      'broken/index.js': "import { typed } from './src/typed.ts'\nexport default { setup: () => typed }\n",
      'broken/src/typed.ts':
        "import data from '../package.json' with { type: 'json' }\nexport { typed } from './deep.js'\nexport const a: string = data.name\n",
      'broken/src/deep.js': 'export const typed = 1\n\nlet a\nlet a\n',
    })
    const error = await problemOf({ plugins: ['./broken'], from: [dir.url] })
    expect(error).to.include({ code: 'PLUGIN_IMPORT_FAILED', where: 'src/deep.js:4' })
  })

  it('is reported by the same place where it is to run in a process of its own, which can look for none', async () => {
    const texts = { 'src/deep.js': '\n\nexport const y = = 3', 'src/old.cjs': '\n\nconst a = = 3' }
    for (const [file, text] of Object.entries(texts)) {
      const entry = `import './${file}'\nexport default { setup() {} }`
      await using dir = await folder({ 'broken/package.json': BROKEN, 'broken/index.js': entry, [`broken/${file}`]: text })
      const error = await failureOf(isolate({ name: BROKEN.name, module: new URL('broken/index.js', dir.url).href }))
      expect(error).to.include({ code: 'PLUGIN_IMPORT_FAILED', plugin: BROKEN.name, where: `${file}:3` })
    }
  })
})
