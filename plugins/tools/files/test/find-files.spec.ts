import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import { openFiles, refusal } from './support/files.ts'

async function tree(config: object = {}) {
  const files = await openFiles(config)
  for (const path of [
    'src/a.ts',
    'src/deep/b.ts',
    'src/deep/c.tsx',
    'src/x{1}.ts',
    'docs/read me.md',
    'node_modules/m/index.ts',
    '.hidden/d.ts',
    'top.ts',
  ]) {
    await mkdir(files.at('root', path, '..'), { recursive: true })
    await writeFile(files.at('root', path), '')
  }
  await symlink(files.at('beside'), files.at('root', 'src', 'leak'))
  const found = async (args: { pattern: string; path?: string; type?: string; ignored?: boolean }) =>
    ((await files.find(args)).structured as { found: { path: string }[] }).found.map(item => item.path)
  return { ...files, found, [Symbol.asyncDispose]: files.close }
}

describe('find_files', () => {
  const patterns: [string, string[]][] = [
    ['*.md', ['docs/read me.md']],
    ['src/*.ts', ['src/a.ts', 'src/x{1}.ts']],
    ['src/**/*.ts', ['src/a.ts', 'src/deep/b.ts', 'src/x{1}.ts']],
    ['**/deep/*.{ts,tsx}', ['src/deep/b.ts', 'src/deep/c.tsx']],
    ['./src/[a-b].t?', ['src/a.ts']],
    ['src/[!a]*.ts', ['src/x{1}.ts']],
    ['src/x\\{1\\}.ts', ['src/x{1}.ts']],
    ['{docs,src/deep}/**', ['docs/read me.md', 'src/deep/b.ts', 'src/deep/c.tsx']],
    ['*.TS', []],
    ['/top.ts', ['top.ts']],
    ['src', []],
  ]
  for (const [pattern, paths] of patterns)
    it(`finds by ${pattern}`, async () => {
      await using files = await tree()
      await writeFile(files.at('root', '.gitignore'), 'node_modules\n.hidden/\n')
      expect(await files.found({ pattern })).to.deep.equal(paths)
    })

  it('leaves out what ignore files say, in their folders and above, unless asked otherwise', async () => {
    await using files = await tree()
    await writeFile(files.at('root', '.gitignore'), 'node_modules/\n*.tsx\n')
    await writeFile(files.at('root', 'src', '.ignore'), '!c.tsx\n/a.ts\n')
    expect(await files.found({ pattern: '**/*.{ts,tsx}' })).to.deep.equal([
      '.hidden/d.ts',
      'src/deep/b.ts',
      'src/deep/c.tsx',
      'src/x{1}.ts',
      'top.ts',
    ])
    expect(await files.found({ pattern: '*.tsx', path: 'src/deep' })).to.deep.equal(['src/deep/c.tsx'])
    expect(await files.found({ pattern: '**/index.ts', ignored: true })).to.deep.equal(['node_modules/m/index.ts'])
  })

  it('finds folders, and links, which it does not follow', async () => {
    await using files = await tree()
    expect(await files.found({ pattern: 'src/*', type: 'directory' })).to.deep.equal(['src/deep'])
    expect(await files.found({ pattern: 'src/le*', type: 'any' })).to.deep.equal(['src/leak'])
    expect(await files.found({ pattern: 'secret.txt', type: 'any' })).to.deep.equal([])
  })

  it('says where its limits ended it', async () => {
    await using few = await tree({ max_entries: 2 })
    const answer = (await few.find({ pattern: '*.ts' })).structured as { found: object[]; truncated: boolean; note: string }
    expect(answer).to.include({ truncated: true, note: 'More files match; these are the first 2.' })
    expect(answer.found).to.have.lengthOf(2)
    await using short = await tree({ max_search_entries: 3 })
    expect((await short.find({ pattern: 'nothing' })).structured).to.deep.include({
      truncated: true,
      note: 'The search is incomplete: it ended after 3 entries. No file matches the pattern.',
    })
  })

  it('finds in several roots', async () => {
    await using files = await openFiles({}, ['one', 'two'])
    for (const root of ['one', 'two']) await writeFile(files.at(root, 'a.txt'), '')
    const { found } = (await files.find({ pattern: '*.txt' })).structured as { found: { path: string }[] }
    expect(found.map(item => item.path)).to.deep.equal(['one/a.txt', 'two/a.txt'])
    const some = (await files.find({ pattern: 'two/*' })).structured as { found: { path: string }[] }
    expect(some.found.map(item => item.path)).to.deep.equal(['two/a.txt'])
  })

  it('is not held up by patterns and ignore files that make other matchers run for ever', async () => {
    await using files = await openFiles()
    const name = 'a'.repeat(250)
    await writeFile(files.at('root', name), '')
    await writeFile(
      files.at('root', '.gitignore'),
      `${'*a'.repeat(30)}b\n${`${'*a'.repeat(3)}*b\n`.repeat(500)}${'**/a*'.repeat(20)}b\n`
    )
    const pattern = `${'*a'.repeat(60)}b`
    expect((await files.find({ pattern })).structured).to.deep.include({ found: [] })
    expect((await files.find({ pattern: `{${'a*,'.repeat(100)}{{a*}*}}*b` })).structured).to.deep.include({ found: [] })
    expect((await files.find({ pattern: 'a*' })).structured).to.deep.include({ found: [{ path: name, type: 'file' }] })
  })

  it('refuses patterns that are none, in words', async () => {
    await using files = await openFiles()
    for (const pattern of ['a{b', '{{{{{{a}}}}}}', '/', 'x'.repeat(2000), '[z-a]'])
      expect((await refusal(files.find({ pattern }))).message, pattern).to.include('is not a valid pattern')
  })
})
