import type { Command } from '@svc/core/contracts'

/** Answers the exit code; 0 where it answers nothing. `host()` would start the configured host in this process, without what listens. */
//js: /** @type {import('@svc/core/contracts').Command} */
const sampleWord: Command = async ({ args, print, note }) => {
  if (args.length === 0) {
    note('usage: svc sample-word <text>...')
    return 2
  }
  const words = args.flatMap(text => text.split(/\s+/).filter(word => word !== ''))
  print(`${words.length} ${words.length === 1 ? 'word' : 'words'}`)
  return 0
}

export default sampleWord
