import { countWords } from './count.js'

/** @type {import('@svc/core/contracts').Command} */
export default async ({ args, print, note }) => {
  if (args.length === 0) {
    note('usage: svc words <text>...')
    return 2
  }
  print(String(countWords(args.join(' '))))
  return 0
}
