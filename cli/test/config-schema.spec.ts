import { fileURLToPath } from 'node:url'
import { readConfigFile } from '@svc/core'
import { Ajv } from 'ajv'
import { expect } from 'chai'
import { makeWorkspace } from './support/svc.ts'

describe('svc config schema', function () {
  this.timeout(60_000)
  const EXAMPLES = [
    'custom-tool',
    'odd-provider',
    'careful-tool',
    'fallback',
    'bridge-community-server',
    'sandboxed-tool',
    'local-model',
  ]
  const read = async (name: string) => {
    const { value } = await readConfigFile(fileURLToPath(new URL(`../../examples/${name}/svc.config.yaml`, import.meta.url)))
    return value
  }

  it('takes what the examples say, the sections of strangers included, and refuses what svc would refuse', async () => {
    await using workspace = await makeWorkspace()
    const folders = EXAMPLES.map(name => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url)))
    const plugins = ['custom-tool', 'careful-tool', 'odd-provider', 'sandboxed-tool'].map(name =>
      folders.find(folder => folder.endsWith(name))
    )
    await workspace.write('svc.config.json', JSON.stringify({ $schema: './svc.schema.json', plugins }))
    const { code, out, err } = await workspace.svc(['config', 'schema'])
    expect(code, err).to.equal(0)
    const check = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(JSON.parse(out) as object)
    const errorsOf = (value: object) => (check(value) ? [] : check.errors!.map(error => `${error.instancePath} ${error.message}`))
    for (const name of EXAMPLES) expect(errorsOf(await read(name)), name).to.deep.equal([])
    for (const wrong of [
      { server: { prot: 1 } },
      { server: { port: 'no number' } },
      { server: { workers: 0 } },
      { plugins: [{ optional: true }] },
      { providers: { openai: { api_key: 7 } } },
      { providers: { mine: { type: 'opnai' } } },
      { providers: { mine: { type: 'openai', no_such_key: 1 } } },
      { log: { level: 'loud' } },
      { tools: { dice: { most: 'many' } } },
      { nothing: {} },
    ])
      expect(errorsOf(wrong), JSON.stringify(wrong)).to.not.deep.equal([])
  })
})
