import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { CONDITIONS, FRUGAL, SOURCE_TYPES, SVC } from './entry.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FENCE = /^```(ts|js|jsonc?|yaml)\n([\s\S]*?)^```$/gm
const NAME = /^(?:\/\/|#) ([\w./-]+\.\w+)\n/
const TSCONFIG = /^```jsonc\n\/\/ tsconfig\.json\n([^]*?)^```$/m

/** A document whose samples are programs: those whose first line names their file are whole. */
export interface Document {
  /** The files of its whole samples. */
  readonly names: readonly string[]
  /** Samples that neither name a file nor show by `…` that something is left out, as `docs/a.md:7`. */
  readonly unclear: readonly string[]
  /** Where a file lies, once the samples have been laid out. */
  at(name: string): string
  layOut(): Promise<void>
  /** Runs a program of Node in the folder; its output, also where it fails. */
  run(...args: string[]): Promise<{ readonly code: number; readonly out: string }>
  svc(...args: string[]): Promise<{ readonly code: number; readonly out: string }>
  remove(): Promise<void>
}

interface Sample {
  readonly at: string
  readonly name: string | undefined
  readonly code: string
}

async function samplesOf(path: string): Promise<Sample[]> {
  const text = await readFile(join(ROOT, path), 'utf8')
  return [...text.matchAll(FENCE)].map(({ index, 2: code = '' }) => ({
    at: `${path}:${text.slice(0, index).split('\n').length}`,
    name: NAME.exec(code)?.[1],
    code,
  }))
}

/** The samples of these pages, in one folder. */
export async function readDocument(...paths: readonly string[]): Promise<Document> {
  const samples = (await Promise.all(paths.map(samplesOf))).flat()
  const whole = samples.flatMap(({ name, code }) => (name === undefined ? [] : [{ name, code }]))
  let folder = ''
  const at = (name: string) => join(folder, name)
  const run: Document['run'] = async (...args) => {
    const options = { cwd: folder, env: { ...process.env, ...FRUGAL, SVC_HOME: at('home'), NODE_OPTIONS: '' } }
    return promisify(execFile)(process.execPath, args, options).then(
      ({ stdout }) => ({ code: 0, out: stdout }),
      ({ code, stdout, stderr }) => ({ code, out: `${stdout}${stderr}` })
    )
  }
  return {
    names: whole.map(item => item.name),
    unclear: samples.filter(sample => sample.name === undefined && !sample.code.includes('…')).map(sample => sample.at),
    at,
    async layOut() {
      folder = await mkdtemp(join(tmpdir(), 'svc-samples-'))
      await symlink(join(ROOT, 'node_modules'), at('node_modules'))
      for (const { name, code } of whole) {
        await mkdir(dirname(at(name)), { recursive: true })
        await writeFile(at(name), name.endsWith('.json') ? withoutComments(code) : code)
      }
      await writeFile(at('package.json'), '{ "type": "module" }')
      await writeFile(at('tsconfig.json'), JSON.stringify({ compilerOptions: await compilerOptions() }))
    },
    run,
    svc: (...args) => run(...SVC, ...args),
    remove: () => rm(folder, { recursive: true }),
  }
}

const withoutComments = (code: string) => code.replaceAll(/(^|\s)\/\/.*$/gm, '')

/** The tsconfig that docs/guides/write-a-plugin.md gives to authors; from the sources, what it says to add within the checkout. */
async function compilerOptions(): Promise<object> {
  const text = TSCONFIG.exec(await readFile(join(ROOT, 'docs/guides/write-a-plugin.md'), 'utf8'))?.[1] ?? ''
  const { compilerOptions: given } = JSON.parse(text) as { compilerOptions: object }
  return { ...given, ...SOURCE_TYPES, types: ['node', 'mocha'] }
}

/** The tests that hold for every document: its samples are clear, have the right types, and their own tests pass. */
export function documentTests(document: Document, { passes }: { readonly passes: number }): void {
  it('names the file of each sample that is whole, and shows a gap in every other', () => {
    expect(document.unclear).to.deep.equal([])
  })

  it('has samples of the right types, with the tsconfig that docs/guides/write-a-plugin.md gives', async () => {
    const tsc = fileURLToPath(import.meta.resolve('typescript/package.json'))
    const { out } = await document.run(join(dirname(tsc), 'bin/tsc'), '-p', '.', '--pretty', 'false')
    // what lies outside is our own source, which has its own tsconfig and its own check
    const problems = out.split('\n').filter(line => /^[^.\s].*: error TS/.test(line) || line.startsWith('error TS'))
    expect(problems).to.deep.equal([])
  }).timeout(180_000)

  it('has tests that pass', async () => {
    const mocha = join(ROOT, 'node_modules/mocha/bin/mocha.js')
    const specs = document.names.filter(name => name.endsWith('.spec.ts'))
    const args = ['--no-config', '--reporter', 'json', '--timeout', '20000', ...specs]
    const { code, out } = await document.run(...CONDITIONS, mocha, ...args)
    expect(code, out).to.equal(0)
    const { stats } = JSON.parse(out.slice(out.indexOf('{'))) as { stats: { passes: number; suites: number } }
    expect(stats.suites).to.equal(specs.length)
    expect(stats.passes).to.be.above(passes)
  }).timeout(180_000)
}
