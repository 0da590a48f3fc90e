import { lstat, mkdir, readdir, symlink } from 'node:fs/promises'
import { systemContext } from '@svc/core'
import { Workplace } from '@svc/core/contracts'
import { expect } from 'chai'
import { openFiles, refusal, sample, swapping, text } from './support/files.ts'

describe('tools-files, that change files', () => {
  it('never change anything outside while a folder is swapped for a link under their hands', async () => {
    await using files = await sample()
    await mkdir(files.at('root', 'swap'))
    const stop = swapping(files, 'swap')
    const codes = new Set<string>()
    const done = (work: Promise<unknown>) =>
      work.then(
        () => codes.add('done'),
        (error: { code: string }) => codes.add(error.code)
      )
    // both sides of the race must have won once, whatever else the machine does
    const isDone = (times: number) => times >= 300 && codes.has('done') && codes.has('PATH_OUTSIDE')
    for (let times = 0; !isDone(times); times++) {
      await done(files.write({ path: 'swap/secret.txt', content: 'harmless', overwrite: true }))
      await done(files.write({ path: `swap/new-${times}.txt`, content: 'harmless' }))
      await done(files.edit({ path: 'swap/secret.txt', old_text: 'e', new_text: 'E', all: true }))
      await done(files.move({ from: 'swap/secret.txt', to: 'swap/moved.txt', overwrite: true }))
      await done(files.remove({ path: 'swap/moved.txt' }))
      await done(files.write({ path: 'swap/made/deep.txt', content: 'harmless', overwrite: true }))
      await done(files.remove({ path: 'swap/made', recursive: true }))
    }
    await stop()
    expect(await readdir(files.at('beside'))).to.deep.equal(['secret.txt'])
    expect(await text(files.at('beside', 'secret.txt'))).to.equal('the secret')
  }).timeout(60_000)

  it('never write through a last step that is swapped for a link', async () => {
    await using files = await openFiles()
    let going = true
    const swap = (async () => {
      for (let at = 0; going; at++) {
        await symlink(files.at('beside', 'secret.txt'), files.at('root', 'a.txt')).catch(() => {})
        await files.remove({ path: 'a.txt' }).catch(() => {})
      }
    })()
    for (let times = 0; times < 300; times++) {
      await files.write({ path: 'a.txt', content: 'harmless', overwrite: true }).catch(() => {})
      await files.edit({ path: 'a.txt', old_text: 'e', new_text: 'E', all: true }).catch(() => {})
    }
    going = false
    await swap
    expect(await text(files.at('beside', 'secret.txt'))).to.equal('the secret')
  })

  it('tell no path of the machine', async () => {
    await using files = await sample()
    const reported = [
      await files.write({ path: 'new.txt', content: '' }),
      await files.move({ from: 'new.txt', to: 'moved.txt' }),
      await files.remove({ path: 'moved.txt' }),
      ...(await Promise.all([
        refusal(files.write({ path: 'a.txt/x', content: '' })),
        refusal(files.edit({ path: 'notes', old_text: 'a', new_text: '' })),
        refusal(files.move({ from: 'a.txt', to: 'notes' })),
        refusal(files.remove({ path: 'notes' })),
        refusal(files.remove({ path: 'x'.repeat(300) })),
      ])),
    ]
    for (const item of reported)
      expect(JSON.stringify(item) + (item instanceof Error ? item.message : '')).to.not.include(files.at())
  })

  it('tell others where tools work', async () => {
    await using files = await openFiles({}, ['a', 'b'])
    const roots = await files.host.service(Workplace).roots(systemContext(new AbortController().signal))
    expect(roots).to.deep.equal([files.at('a'), files.at('b')])
    expect((await lstat(roots[0]!)).isDirectory()).to.equal(true)
  })
})
