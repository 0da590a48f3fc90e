import type { Play } from '../play.ts'
import type { Team } from '../team.ts'
import { consensus } from './consensus.ts'
import { hierarchical } from './hierarchical.ts'
import { parallel } from './parallel.ts'
import { pipeline } from './pipeline.ts'
import { reflection } from './reflection.ts'
import { sequential } from './sequential.ts'

/** How a team of each formation works. */
export const FORMATIONS: Readonly<Record<Team['formation'], (team: Team, task: string) => Play>> = {
  sequential,
  parallel,
  hierarchical,
  pipeline,
  consensus,
  reflection,
}
