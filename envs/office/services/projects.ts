// The projects service: project tracker.
import {
  date,
  datetime,
  defineService,
  email,
  id,
  oneOf,
  opt,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'

const projectStatus = oneOf('planned', 'active', 'paused', 'done')
const taskStatus = oneOf('todo', 'doing', 'blocked', 'done')

export const projects = defineService({
  name: 'projects',
  title: 'Project tracker',
  entities: {
    project: {
      id: 'project_id',
      prefix: 'PJ',
      fields: {
        project_id: id,
        name: str,
        status: projectStatus,
        owner: email,
        due_date: opt(date),
      },
      search: ['name'],
    },
    task: {
      id: 'task_id',
      prefix: 'TA',
      fields: {
        task_id: id,
        project_id: ref('projects.project'),
        title: str,
        description: opt(text),
        status: taskStatus,
        assignee: opt(email),
        due_date: opt(date),
        created_at: opt(datetime),
      },
      search: ['title', 'description'],
    },
    comment: {
      id: 'comment_id',
      prefix: 'PC',
      fields: {
        comment_id: id,
        task_id: ref('projects.task'),
        author: email,
        text,
        created_at: datetime,
      },
    },
  },
  tools: {
    projects_list: {
      op: 'list',
      entity: 'project',
      params: { status: opt(projectStatus) },
    },
    projects_list_tasks: {
      op: 'list',
      entity: 'task',
      params: { project_id: opt(id), status: opt(taskStatus), assignee: opt(email) },
    },
    projects_get_task: { op: 'get', entity: 'task' },
    projects_create_task: {
      op: 'create',
      entity: 'task',
      params: {
        project_id: ref('projects.project'),
        title: str,
        description: opt(text),
        assignee: opt(email),
        due_date: opt(date),
      },
      defaults: { status: 'todo' },
    },
    projects_update_task: {
      op: 'update',
      entity: 'task',
      params: {
        title: opt(str),
        status: opt(taskStatus),
        assignee: opt(email),
        due_date: opt(date),
      },
    },
    projects_comment_task: {
      op: 'create',
      entity: 'comment',
      params: { task_id: ref('projects.task'), text },
      defaults: { author: '@actor' },
    },
  },
})
